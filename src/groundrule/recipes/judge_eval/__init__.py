"""Measure a judge before it is believed: on known answers, on labelled groups, on what a training left."""
