"""The judge `local/likelihood`, or `local/likelihood:MODEL`."""

from __future__ import annotations

from typing import Any

from groundrule.models import embedded
from groundrule.models.pool import for_judging
from groundrule.models.text_model import FrozenTextModel
from groundrule.rewards.judge_params import checked_params
from groundrule.rewards.likelihood import LikelihoodJudge, LikelihoodSettings


def likelihood_judge(name: str, params: dict[str, Any] | None = None) -> LikelihoodJudge:
    """The judge behind `local/<name>`; `params` are `LikelihoodSettings`.

    The model is the embedded one unless another is named after a colon.
    """
    model = name.partition(":")[2]
    settings = checked_params(LikelihoodSettings, "local/likelihood", params)
    return LikelihoodJudge(FrozenTextModel(for_judging(model or embedded.NAME)), settings)
