"""PPO with a critic on LoRA weights (Schulman et al. 2017; Ziegler et al. 2019): scored groups in, a better policy out.

Policy, reference and critic share one base: the reference is the base with its adapters off, the critic an adapter and
a head of its own. Or reference and critic are models of their own, as in the papers. A reward model, or whoever else
scores, has spoken before: its score is each trajectory's reward.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch

from groundrule.algorithms.gae import adapted_kl_coefficient
from groundrule.data.group import TrajectoryGroup
from groundrule.errors import ConfigError
from groundrule.models.critic import new_critic
from groundrule.models.load import LanguageModel
from groundrule.models.lora import (
    adapter_parameters,
    adapter_state,
    add_adapter,
    has_adapter,
    load_adapter_state,
)
from groundrule.models.tree import TokenTree
from groundrule.models.tree_pass import all_logprobs
from groundrule.training.batch import tree_of
from groundrule.training.checkpoints import optimizer_tensors, restore_optimizer
from groundrule.training.optimizing import adamw, take_step
from groundrule.training.ppo_batch import PpoBatch, ScoredTokens, estimated, scored_tokens
from groundrule.training.ppo_gradient import add_critic_gradients, add_policy_gradients
from groundrule.training.ppo_metrics import Progress, batch_metrics, group_metrics
from groundrule.training.ppo_settings import PpoSettings
from groundrule.training.schedule import shuffled_batches

BETAS = (0.9, 0.99)


class PpoTrainer:
    """Trains the policy's adapter, and a critic with it.

    `reference` and `critic` are models to be used in place of the shared base. The reference is taken as it is; the
    critic gets an adapter and a head. Both must have the policy's tokens. One seed makes both forms begin alike.
    """

    def __init__(
        self,
        model: LanguageModel,
        settings: PpoSettings | None = None,
        *,
        reference: LanguageModel | None = None,
        critic: LanguageModel | None = None,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.settings = settings or PpoSettings()
        self.reference = None if reference is model else reference
        self.seed = seed
        for role, other in (("reference", reference), ("critic", critic)):
            _check_tokens(model, role, other)
        if not has_adapter(model):
            add_adapter(model, self.settings.lora, seed=seed)
        self.critic = new_critic(critic or model, self.settings.lora, seed=seed)
        self.parameters = adapter_parameters(model)
        self.critic_parameters = self.critic.parameters()
        self.optimizer = adamw(self.parameters, self.settings.learning_rate, betas=BETAS)
        self.critic_optimizer = adamw(self.critic_parameters, self.settings.critic_learning_rate, betas=BETAS)
        self.steps = 0
        self.kl_coef = self.settings.kl_coef

    def step(self, groups: Sequence[TrajectoryGroup]) -> dict[str, float]:
        """Update policy and critic from these groups; numbers about both before and during the step.

        The policy stays to the bit where no token has an advantage, and in the steps of the critic's warm-up.
        """
        trajectories = scored_tokens(groups, truncated_penalty=self.settings.truncated_penalty)
        self.steps += 1
        metrics = {**group_metrics(groups), "ppo/kl_coef": self.kl_coef}
        if not trajectories:
            return {**metrics, "ppo/updated": 0.0, "ppo/epochs": 0.0}
        with self._held():
            batch = self.estimate(trajectories)
            metrics |= batch_metrics(batch, self.kl_coef, [t.score for t in trajectories])
            metrics |= self._learn(batch, len(trajectories))
        if self.settings.kl_target is not None and not self.is_warming_up:
            self.kl_coef = adapted_kl_coefficient(
                self.kl_coef,
                metrics["ppo/kl_answer"],
                target=self.settings.kl_target,
                answers=len(trajectories),
                horizon=self.settings.kl_horizon,
            )
        return metrics

    @property
    def is_warming_up(self) -> bool:
        """Whether the step that was begun last trains the critic alone."""
        return self.steps <= self.settings.critic_warmup_steps

    def estimate(self, trajectories: Sequence[ScoredTokens]) -> PpoBatch:
        """What each sampled token was worth, by policy, reference and critic as they are now."""
        sequences = [s for t in trajectories for history in t.histories for s in history]
        tree = tree_of(sequences, share=self.settings.share_prefixes)
        at_once = self.settings.tokens_at_once
        return estimated(
            trajectories,
            all_logprobs(self.model, tree, tokens_at_once=at_once),
            self._reference_logprobs(tree),
            [row.to(self.model.device) for row in self.critic.values(tree, tokens_at_once=at_once)],
            settings=self.settings,
            kl_coef=self.kl_coef,
        )

    def more_state(self) -> dict[str, torch.Tensor]:
        """What a checkpoint keeps beside the policy's adapter and optimizer: the critic and two counters."""
        adapter = adapter_state(self.critic.model, self.critic.adapter)
        moments = optimizer_tensors(self.critic_parameters, self.critic_optimizer)
        return {
            **{f"critic/{name}": tensor for name, tensor in adapter.items()},
            **{f"critic_optimizer/{_anonymous(n, self.critic.adapter)}": t for n, t in moments.items()},
            "critic_head": self.critic.head.weight.detach().cpu().clone(),
            "kl_coef": torch.tensor(self.kl_coef, dtype=torch.float64),
            "steps": torch.tensor(self.steps),
        }

    def load_more_state(self, state: dict[str, torch.Tensor]) -> None:
        """Go on from what `more_state` gave."""
        adapter, moments = _under(state, "critic/"), _under(state, "critic_optimizer/")
        load_adapter_state(self.critic.model, adapter, self.critic.adapter)
        named = {_anonymous(name, self.critic.adapter): p for name, p in self.critic_parameters.items()}
        restore_optimizer(named, self.critic_optimizer, moments)
        with torch.no_grad():
            self.critic.head.weight.copy_(state["critic_head"])
        self.kl_coef, self.steps = float(state["kl_coef"]), int(state["steps"])

    def _learn(self, batch: PpoBatch, trajectories: int) -> dict[str, float]:
        """Several passes over the step in minibatches; ends early where the policy has gone too far."""
        settings, moves_policy = self.settings, not self.is_warming_up and batch.has_signal
        batches = shuffled_batches(
            trajectories,
            settings.trajectories_per_update,
            epochs=settings.epochs,
            seed=f"{self.seed}/{self.steps}",
        )
        progress = Progress()
        for members in batches:
            part = batch.only(members)
            if moves_policy and not self._move_policy(part, progress):
                break
            self._move_critic(part, progress)
            progress.updates += 1
        return {**progress.metrics(), "ppo/epochs": settings.epochs * progress.updates / len(batches)}

    def _move_policy(self, part: PpoBatch, progress: Progress) -> bool:
        """One update, unless it is too far already from where the step began: then False, and it stays."""
        self.optimizer.zero_grad(set_to_none=True)
        sums = add_policy_gradients(self.model, part, self.settings)
        progress.policy += sums
        if self.settings.stop_kl is not None and sums.mean("kl") > self.settings.stop_kl:
            self.optimizer.zero_grad(set_to_none=True)
            progress.is_stopped = True
            return False
        progress.norm, is_moved = take_step(
            self.optimizer, sums.loss, max_grad_norm=self.settings.max_grad_norm
        )
        progress.is_updated |= is_moved
        return True

    def _move_critic(self, part: PpoBatch, progress: Progress) -> None:
        self.critic_optimizer.zero_grad(set_to_none=True)
        sums = add_critic_gradients(self.critic, part, self.settings)
        progress.critic += sums
        progress.critic_norm, _ = take_step(
            self.critic_optimizer, sums.loss, max_grad_norm=self.settings.max_grad_norm
        )

    def _reference_logprobs(self, tree: TokenTree) -> list[torch.Tensor]:
        at_once = self.settings.tokens_at_once
        if self.reference is None:
            with self.model.base_only():
                return all_logprobs(self.model, tree, tokens_at_once=at_once)
        found = all_logprobs(self.reference, tree, tokens_at_once=at_once)
        return [row.to(self.model.device) for row in found]

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Nobody else uses the models meanwhile."""
        with contextlib.ExitStack() as stack:
            for model in (self.model, self.critic.model, self.reference):
                if model is not None:
                    stack.enter_context(model.lock)
            yield


def _check_tokens(model: LanguageModel, role: str, other: LanguageModel | None) -> None:
    if other is not None and other.tokenizer.get_vocab() != model.tokenizer.get_vocab():
        raise ConfigError(
            f"the {role} {other.name} has other tokens than the policy {model.name}, and both read the same token "
            f"ids; use a {role} with the policy's tokenizer, or leave it out to share the policy's base"
        )


def _anonymous(name: str, adapter: str) -> str:
    """Without the adapter's name, which may be another one where the state is loaded."""
    return name.replace(f".{adapter}.", ".")


def _under(state: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}
