"""The local backend end to end on the tiny model: register, ask, train, resume."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import torch
from openai import NotFoundError

from groundrule.algorithms.sequences import sequences_of
from groundrule.backends.local import LocalBackend
from groundrule.backends.model import Model, TrainableModel, TrainConfig
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Policy
from groundrule.data.runs import Run
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory
from groundrule.errors import CheckpointError, ConfigError, TrainingError
from groundrule.models import pool
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings
from groundrule.training.lora_trainer import TrainerSettings
from tiny import ASK, tiny_model

SETTINGS = TrainerSettings(lora=LoraSettings(rank=4, alpha=8))


@pytest.fixture(autouse=True)
def only_tiny_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name loads the tiny model, into an empty pool."""

    def load(name: str, *, device: str | None = None) -> LanguageModel:
        return tiny_model()

    monkeypatch.setattr(pool, "load_model", load)
    monkeypatch.setattr(pool, "_models", {})
    monkeypatch.setattr(pool, "_trained", [])


def backend_in(folder: Path, seed: int = 0) -> LocalBackend:
    return LocalBackend(path=folder, device="cpu", settings=SETTINGS, seed=seed)


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncIterator[LocalBackend]:
    made = backend_in(tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def model(backend: LocalBackend) -> AsyncIterator[TrainableModel]:
    made = TrainableModel(name="support", project="p", base_model="tiny")
    await made.register(backend)
    yield made
    await made.openai_client().close()


async def answers(model: TrainableModel, *rewards: float, seed: int = 0) -> TrajectoryGroup:
    """A group of sampled answers with these rewards."""
    reply = await model.openai_client().chat.completions.create(
        model=model.get_inference_name(), messages=ASK, n=len(rewards), max_tokens=6, seed=seed  # type: ignore[arg-type]
    )  # fmt: skip
    return TrajectoryGroup(
        [
            Trajectory(messages_and_choices=[*ASK, choice], reward=reward)
            for choice, reward in zip(reply.choices, rewards, strict=True)
        ]
    )


def adapter(backend: LocalBackend, model: TrainableModel) -> dict[str, torch.Tensor]:
    return {n: p.detach().clone() for n, p in backend.served(model).trainer.parameters.items()}


def moved(backend: LocalBackend, model: TrainableModel, before: dict[str, torch.Tensor]) -> bool:
    return any(not torch.equal(p, before[n]) for n, p in adapter(backend, model).items())


async def test_a_registered_model_answers_its_own_client(model: TrainableModel) -> None:
    group = await answers(model, 0.0)

    choice = group.trajectories[0].messages_and_choices[-1]
    assert len(choice.token_ids) == len(choice.logprobs.content)
    assert choice.policy_version == 0


async def test_model_train_moves_the_policy_and_counts_the_step(
    backend: LocalBackend, model: TrainableModel
) -> None:
    group, before = await answers(model, 1.0, 0.0, 0.5), adapter(backend, model)

    result = await model.train([group], TrainConfig(learning_rate=1e-3))

    assert moved(backend, model, before)
    assert (result.step, await model.get_step()) == (1, 1)


async def test_backend_train_moves_the_policy_and_counts_the_step(
    backend: LocalBackend, model: TrainableModel
) -> None:
    group, before = await answers(model, 1.0, 0.0), adapter(backend, model)

    result = await backend.train(model, [group], learning_rate=1e-3)

    assert moved(backend, model, before)
    assert (result.step, await backend.get_step(model)) == (1, 1)


async def test_the_first_step_s_ratios_are_one(model: TrainableModel) -> None:
    result = await model.train([await answers(model, 1.0, 0.0)])

    assert result.metrics["policy/ratio_max_error"] < 1e-4


async def test_the_endpoint_answers_with_the_new_weights_afterwards(model: TrainableModel) -> None:
    before = await answers(model, 1.0, 0.0, seed=1)

    await model.train([before], TrainConfig(learning_rate=0.1))
    after = await answers(model, 1.0, 0.0, seed=1)

    choices = [group.trajectories[0].messages_and_choices[-1] for group in (before, after)]
    assert choices[0].logprobs.content[0].logprob != choices[1].logprobs.content[0].logprob
    assert [c.policy_version for c in choices] == [0, 1]


async def test_a_step_of_ties_counts_and_leaves_the_weights_and_the_served_name(
    backend: LocalBackend, model: TrainableModel
) -> None:
    groups = [await answers(model, 1.0, 1.0), await answers(model, 0.0, 0.0, seed=1)]
    before = adapter(backend, model)

    result = await model.train(groups)

    assert not moved(backend, model, before)
    assert (result.step, result.metrics["train/updated"]) == (1, 0.0)
    assert [m.id async for m in model.openai_client().models.list()] == ["support", "support@1"]
    assert len(await answers(model, 0.0)) == 1


async def test_a_step_s_record_and_checkpoint_are_in_the_run_folder(
    backend: LocalBackend, model: TrainableModel, tmp_path: Path
) -> None:
    group = await answers(model, 1.0, 0.0)

    result = await backend.train(model, [group], metrics={"judge/cost_usd": 0.25})

    run = backend.run_of(model)
    assert run.folder == tmp_path / "p/support"
    assert Path(result.checkpoint_path or "") == run.checkpoint_folder(1)
    [line] = run.metrics()
    assert (line["step"], line["reward/mean"], line["judge/cost_usd"]) == (1, 0.5, 0.25)
    assert run.groups(1)[0].rewards == [1.0, 0.0]


async def test_a_resume_in_a_new_backend_has_the_same_adapter_and_step(tmp_path: Path) -> None:
    first, again = (TrainableModel(name="support", project="p", base_model="tiny") for _ in range(2))
    one, two = backend_in(tmp_path), backend_in(tmp_path, seed=9)
    await first.register(one)
    for seed in (1, 2):
        await first.train([await answers(first, 1.0, 0.0, seed=seed)])
    before = adapter(one, first)
    await first.openai_client().close()
    await one.close()

    await again.register(two)
    try:
        assert not moved(two, again, before)
        assert await again.get_step() == 2
        assert two.served(again).engine.version == 2
    finally:
        await two.close()


async def test_an_interrupted_training_ends_where_an_uninterrupted_one_does(tmp_path: Path) -> None:
    async def train(folder: Path, *sittings: list[int]) -> dict[str, torch.Tensor]:
        for seeds in sittings:
            backend, model = backend_in(folder), TrainableModel(name="m", project="p", base_model="tiny")
            await model.register(backend)
            for seed in seeds:
                await model.train([await answers(model, 1.0, 0.0, 0.3, seed=seed)])
            end = adapter(backend, model)
            await model.openai_client().close()
            await backend.close()
        return end

    whole, broken = await train(tmp_path / "a", [1, 2, 3]), await train(tmp_path / "b", [1, 2], [3])

    assert all(torch.equal(p, broken[n]) for n, p in whole.items())


async def test_the_same_model_object_can_move_to_a_new_backend(tmp_path: Path) -> None:
    model = TrainableModel(name="support", project="p", base_model="tiny")
    for _ in range(2):
        backend = backend_in(tmp_path)
        await model.register(backend)
        assert len(await answers(model, 0.0)) == 1
        await model.openai_client().close()
        await backend.close()


async def test_a_damaged_last_checkpoint_takes_the_run_back_one_step(tmp_path: Path) -> None:
    model = TrainableModel(name="support", project="p", base_model="tiny")
    backend = backend_in(tmp_path)
    await model.register(backend)
    for seed in (1, 2):
        result = await model.train([await answers(model, 1.0, 0.0, seed=seed)])
    await model.openai_client().close()
    await backend.close()
    (Path(result.checkpoint_path or "") / "adapter_model.safetensors").write_bytes(b"cut")

    again, resumed = backend_in(tmp_path), TrainableModel(name="support", project="p", base_model="tiny")
    await resumed.register(again)
    try:
        assert await resumed.get_step() == 1
    finally:
        await again.close()


async def test_a_run_without_any_whole_checkpoint_is_refused(tmp_path: Path) -> None:
    with Run.create(tmp_path / "p/support", {"base_model": "tiny"}) as run:
        run.record_step(1, [], {})
    backend = backend_in(tmp_path)

    with pytest.raises(CheckpointError, match="is at step 1 but none of its checkpoints is complete"):
        await TrainableModel(name="support", project="p", base_model="tiny").register(backend)
    await backend.close()


async def test_a_failed_registration_leaves_the_run_free_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/support").write_text("a file where the run folder should be")
    backend, model = backend_in(tmp_path), TrainableModel(name="support", project="p", base_model="tiny")
    with pytest.raises(OSError):
        await model.register(backend)
    (tmp_path / "p/support").unlink()

    await model.register(backend)

    assert await model.get_step() == 0
    await backend.close()


async def test_two_models_trained_at_once_share_no_weights(backend: LocalBackend) -> None:
    models = [TrainableModel(name=name, project="p", base_model="tiny") for name in ("one", "two")]
    await asyncio.gather(*(m.register(backend) for m in models))
    group, before = await answers(models[0], 1.0, 0.0), adapter(backend, models[1])

    await models[0].train([group], TrainConfig(learning_rate=0.1))

    assert not moved(backend, models[1], before)
    await models[0].openai_client().close()


async def lockstep_texts(folder: Path, delays: list[float]) -> list[list[int]]:
    """The tokens of two turns of each of three rollouts, which dawdle before they ask."""
    backend, model = backend_in(folder), TrainableModel(name="m", project="p", base_model="tiny")
    await model.register(backend)

    async def rollout(policy: Policy, scenario: Scenario) -> Trajectory:
        items: list[Any] = list(ASK)
        for turn in range(2):
            await asyncio.sleep(delays[int(scenario.id) - turn])
            reply = await model.openai_client().chat.completions.create(
                model=policy.model, messages=Trajectory(messages_and_choices=items).messages(), max_tokens=5  # type: ignore[arg-type]
            )  # fmt: skip
            items += [reply.choices[0], {"role": "user", "content": "And then?"}]
        return Trajectory(messages_and_choices=items)

    with backend.lockstep(model, rollout, model.policy(), 3) as start:
        done = await asyncio.gather(*(start(Scenario(id=str(i), question="q")) for i in range(3)))
    await model.openai_client().close()
    await backend.close()
    return [[i for s in sequences_of(t) for i in s.ids] for t in done]


async def test_rollouts_in_lockstep_say_the_same_whoever_is_slow(tmp_path: Path) -> None:
    first = await lockstep_texts(tmp_path / "a", [0.0, 0.02, 0.04])
    second = await lockstep_texts(tmp_path / "b", [0.04, 0.0, 0.02])

    assert first == second


async def test_a_model_is_registered_once(backend: LocalBackend, model: TrainableModel) -> None:
    with pytest.raises(ConfigError, match="p/support is already registered"):
        await model.register(backend)


async def test_a_model_that_is_only_asked_is_refused(backend: LocalBackend) -> None:
    with pytest.raises(ConfigError, match="'gpt' is a Model, which is only asked"):
        await Model(name="gpt", project="p").register(backend)


async def test_training_needs_a_backend() -> None:
    with pytest.raises(ConfigError, match="has no backend"):
        await TrainableModel(name="support", project="p", base_model="tiny").train([])


async def test_another_model_s_name_is_not_served(model: TrainableModel) -> None:
    with pytest.raises(NotFoundError, match="'other' is not served here"):
        await model.openai_client().chat.completions.create(model="other", messages=ASK)  # type: ignore[arg-type]


async def test_refused_groups_leave_the_step_and_the_weights(
    backend: LocalBackend, model: TrainableModel
) -> None:
    plain = [*ASK, {"role": "assistant", "content": "x"}]
    group = TrajectoryGroup([Trajectory(messages_and_choices=plain, reward=r) for r in (1.0, 0.0)])
    before = adapter(backend, model)

    with pytest.raises(TrainingError, match="no sampled tokens with logprobs"):
        await model.train([group])

    assert not moved(backend, model, before)
    assert await model.get_step() == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"advantage_balance": 0.5}, "advantage_balance is not supported by LocalBackend"),
        ({"loss_fn": "dro"}, "loss_fn is 'dro'; LocalBackend has 'ppo', 'cispo'"),
        ({"learning_rte": 1e-4}, "unknown setting 'learning_rte'; did you mean 'learning_rate'"),
        ({"learning_rate": -1.0}, r"train\(\) got learning_rate=-1\.0"),
        ({"advantage": "grpo"}, "'grpo' is not an advantage"),
        ({"epsilon": "wide"}, r"train\(\) got clip_low='wide'"),
    ],
)
async def test_a_setting_that_cannot_be_honoured_is_named(
    backend: LocalBackend, model: TrainableModel, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        await backend.train(model, [], **settings)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"loss_fn": "cispo", "epsilon_high": 4.0}, {"loss": "cispo", "clip_high": 4.0}),
        ({"importance_sampling_level": "sequence"}, {"loss": "gspo"}),
        ({"epsilon": 0.1, "kl_penalty_coef": 0.05}, {"clip_low": 0.1, "kl_coef": 0.05}),
        ({"ppo": True, "verbose": True, "plot_tensors": False}, {"loss": "clipped"}),
        ({"truncated_importance_sampling": 2.5}, {"importance": "token", "importance_cap": 2.5}),
    ],
)
async def test_art_s_settings_reach_the_loss(
    backend: LocalBackend, model: TrainableModel, settings: dict[str, Any], found: dict[str, Any]
) -> None:
    await backend.train(model, [], **settings)

    loss = backend.served(model).trainer.settings.policy_loss
    assert {name: getattr(loss, name) for name in found} == found


@pytest.mark.parametrize(
    "settings",
    [
        {"scale_rewards": False},
        {"normalize_advantages": False},
        {"scale_rewards": False, "normalize_advantages": False},
    ],
)
async def test_either_of_art_s_switches_turns_scaling_off(
    backend: LocalBackend, model: TrainableModel, settings: dict[str, Any]
) -> None:
    await backend.train(model, [], **settings)

    assert backend.served(model).trainer.settings.advantage == "mean_only"


async def test_settings_of_one_call_do_not_last(backend: LocalBackend, model: TrainableModel) -> None:
    await backend.train(model, [], epsilon=0.1, learning_rate=1e-3)
    await backend.train(model, [])

    settings = backend.served(model).trainer.settings
    assert (settings.policy_loss.clip_low, settings.learning_rate) == (0.2, 1e-4)


async def test_a_step_whose_gradient_is_not_finite_is_recorded_as_one_that_moved_nothing(
    backend: LocalBackend, model: TrainableModel
) -> None:
    group, before = await answers(model, 1.0, 0.0), adapter(backend, model)
    group.trajectories[0].messages_and_choices[-1].logprobs.content[0].logprob = float("nan")

    result = await model.train([group])

    assert not moved(backend, model, before)
    assert (result.step, result.metrics["train/updated"]) == (1, 0.0)


async def test_old_checkpoints_are_deleted_but_the_last_three_and_the_best(
    backend: LocalBackend, model: TrainableModel
) -> None:
    for reward in (0.2, 0.9, 0.3, 0.4, 0.5, 0.6):
        await backend.train(model, [], metrics={"val/reward": reward})

    await model.delete_checkpoints()

    assert backend.run_of(model).checkpoint_steps() == [2, 4, 5, 6]


async def test_without_the_metric_no_checkpoint_is_deleted(
    backend: LocalBackend, model: TrainableModel, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        await model.train([])

    await model.delete_checkpoints("val/never")

    assert backend.run_of(model).checkpoint_steps() == [1, 2, 3, 4, 5]
    assert "val/never was never recorded" in caplog.text


async def test_the_best_checkpoint_by_a_logged_metric_is_kept(
    backend: LocalBackend, model: TrainableModel
) -> None:
    for reward in (0.2, 0.9, 0.3, 0.4, 0.5, 0.6):
        await model.train([])
        await model.log(metrics={"val/judged": reward})

    await model.delete_checkpoints("val/judged")

    assert backend.run_of(model).checkpoint_steps() == [2, 4, 5, 6]
