"""Reward functions as people write them by hand: counting, no model. The baseline that judges are compared with."""

from groundrule.rewards.handwritten.rag import RagReward, RagWeights, rag_parts
from groundrule.rewards.handwritten.tools import ToolReward, tool_parts

__all__ = ["RagReward", "RagWeights", "ToolReward", "rag_parts", "tool_parts"]
