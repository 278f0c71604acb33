"""The judge `local/likelihood`, or `local/likelihood:MODEL`."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from groundrule.errors import ConfigError
from groundrule.models import embedded
from groundrule.models.pool import for_judging
from groundrule.models.text_model import FrozenTextModel
from groundrule.rewards.likelihood import LikelihoodJudge, LikelihoodSettings


def likelihood_judge(name: str, params: dict[str, Any] | None = None) -> LikelihoodJudge:
    """The judge behind `local/<name>`; `params` are `LikelihoodSettings`.

    The model is the embedded one unless another is named after a colon.
    """
    model = name.partition(":")[2]
    settings = _settings(params or {})
    return LikelihoodJudge(FrozenTextModel(for_judging(model or embedded.NAME)), settings)


def _settings(params: dict[str, Any]) -> LikelihoodSettings:
    try:
        return LikelihoodSettings(**params)
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, fault["loc"]))
        known = ", ".join(LikelihoodSettings.model_fields)
        raise ConfigError(
            f"local/likelihood got {name}={fault['input']!r}: {fault['msg']}; its parameters are {known}"
        ) from error
