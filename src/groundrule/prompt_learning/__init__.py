"""Learn by editing the prompt: lessons from the judge's words, kept only where a blind test shows that they help."""

from groundrule.prompt_learning.learner import PromptLearner

__all__ = ["PromptLearner"]
