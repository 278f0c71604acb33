"""GroundRule trains LLM agents with the reward they already have: their own system prompt."""

__version__ = "0.1.0"
