"""How much memory a method needs, by arithmetic alone: nothing is loaded and nothing is run.

`families` gives a plausible shape for a number of parameters, `methods` which models a method holds, `settings` the
rest of the question, `pieces` what passes through the model at once, `activations` what the way back needs, `decoding`
what answering needs, `plan` all of it together.
"""

from groundrule.algorithms.memory_plan.families import shape_for
from groundrule.algorithms.memory_plan.methods import METHODS, Method, method_named
from groundrule.algorithms.memory_plan.plan import MemoryPlan, Part, memory_plan
from groundrule.algorithms.memory_plan.settings import PlanSettings
from groundrule.data.model_shape import ModelShape

__all__ = [
    "METHODS",
    "MemoryPlan",
    "Method",
    "ModelShape",
    "Part",
    "PlanSettings",
    "memory_plan",
    "method_named",
    "shape_for",
]
