"""Published variants of group-relative policy optimisation by name: one table of settings over one loss.

Where a paper leaves a number open, or other libraries differ from the paper, the number is the paper's own or
its authors' released default; `about` says what the variant changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from groundrule.algorithms.loss_settings import PolicyLossConfig


@dataclass(frozen=True)
class Preset:
    """What makes a variant."""

    advantage: str
    """A name from `algorithms.advantages.ADVANTAGES`."""
    loss: PolicyLossConfig
    about: str
    whiten: bool = False
    """Advantages are brought to mean 0 and variance 1 over all tokens of the step (`advantages.whitened`)."""
    resample_ties: bool = False
    """Groups without any signal are replaced by fresh ones (dynamic sampling)."""


PRESETS: dict[str, Preset] = {
    "ruler": Preset(
        "floored",
        PolicyLossConfig(),
        "for scores of a judge: a floor under the group's std, so that its noise is not blown up; the rest as in DAPO",
    ),
    "grpo": Preset(
        "group_std",
        PolicyLossConfig(clip_high=0.2, aggregation="sequence_mean", kl_coef=0.04),
        "Shao et al. 2024: group mean and std, mean over answers of token means, KL to the base model",
    ),
    "dr_grpo": Preset(
        "mean_only",
        PolicyLossConfig(clip_high=0.2, aggregation="fixed_length"),
        "Liu et al. 2025: no std and no division by the answer's length, which favour long wrong answers",
    ),
    "dapo": Preset(
        "group_std",
        PolicyLossConfig(clip_high=0.28, aggregation="token_mean"),
        "Yu et al. 2025: higher upper clip, mean over all tokens, groups without signal drawn again, no KL",
        resample_ties=True,
    ),
    "gspo": Preset(
        "group_std",
        PolicyLossConfig(loss="gspo", clip_low=3e-4, clip_high=4e-4, aggregation="sequence_mean"),
        "Zheng et al. 2025: one ratio an answer, so bounds are four orders smaller",
    ),
    "cispo": Preset(
        "group_std",
        PolicyLossConfig(loss="cispo", clip_high=4.0, aggregation="token_mean"),
        "MiniMax 2025: the ratio is capped at 5 and held constant; no token is dropped",
    ),
    "rloo": Preset(
        "leave_one_out",
        PolicyLossConfig(clip_high=0.2, aggregation="sequence_mean"),
        "Ahmadian et al. 2024: the others' mean as baseline, no std; theirs is on-policy and needs no clip",
    ),
    "reinforce++": Preset(
        "mean_only",
        PolicyLossConfig(clip_high=0.2, aggregation="token_mean"),
        "Hu et al. 2025, with the group mean as baseline: whitened over the step instead of the group",
        whiten=True,
    ),
    "max_rl": Preset(
        "relative",
        PolicyLossConfig(clip_high=0.28, aggregation="token_mean"),
        "advantages (r - mean) / mean for success rates: rare successes count for more",
    ),
}
"""By the names that papers and other libraries use."""
