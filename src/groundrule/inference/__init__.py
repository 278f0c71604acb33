"""Weights in, OpenAI-compatible answers out: a batching engine and a small server."""
