"""Weights out: the LoRA trainer, which groups it trains on, and checkpoints."""
