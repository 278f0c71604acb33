"""PPO on one shared base: a reward model with other tokens than the policy's cannot stand on it."""

from __future__ import annotations

from collections.abc import Iterator

from groundrule.data.protocols import Scorer
from groundrule.errors import ConfigError
from groundrule.models.load import LanguageModel
from groundrule.models.reward_model import RewardModel
from groundrule.rewards.compose import Composite
from groundrule.rewards.judges import judge_chain
from groundrule.rewards.jury import Jury
from groundrule.rewards.learned import LearnedReward
from groundrule.rewards.ruler import Ruler


def check_shared_reward_model(scorer: Scorer, policy: LanguageModel) -> None:
    """Raise `ConfigError` for a reward model of another tokenizer that the policy is to be trained on.

    One with the same tokens on another base is accepted and keeps its own base; judges that are only logged may be
    anything.
    """
    for model in reward_models(scorer):
        if model.model.tokenizer.get_vocab() != policy.tokenizer.get_vocab():
            raise ConfigError(
                f"the reward model on {model.model.name} has another tokenizer than the policy "
                f"{policy.name}, and in PPO on a shared base policy, reference, critic and reward model read the same "
                "token ids; train one on the policy's base (groundrule rlhf does), or set ppo.apart = true: then it "
                "reads text, as a model of its own"
            )


def reward_models(scorer: Scorer) -> Iterator[RewardModel]:
    """Every reward model whose value is trained on."""
    if isinstance(scorer, LearnedReward) and isinstance(scorer.model, RewardModel):
        yield scorer.model
    elif isinstance(scorer, Ruler) and _names_reward_model(scorer.judge_model):
        [judge, *_] = judge_chain(scorer.judge_model, scorer.extra_litellm_params)
        if isinstance(judge, LearnedReward):
            yield from reward_models(judge)
    elif isinstance(scorer, Jury):
        for juror in scorer.jurors:
            if juror.role != "holdout":
                yield from reward_models(juror.scorer)
    elif isinstance(scorer, Composite):
        for part in scorer.parts:
            yield from reward_models(part.scorer)


def _names_reward_model(name: object) -> bool:
    return isinstance(name, LearnedReward) or str(name).startswith("local/reward-model/")
