"""`groundrule train` with a section [ppo]: the same run folder, another algorithm."""

from __future__ import annotations

import pytest

from groundrule._util.aio import run_sync
from groundrule.backends.local import LocalBackend
from groundrule.backends.model import TrainableModel
from groundrule.data.runs import Run
from groundrule.errors import ConfigError
from groundrule.models import pool
from groundrule.models.lora import LoraSettings
from groundrule.models.reward_model import new_reward_model
from groundrule.recipes.config import TrainingConfig, parse_config
from groundrule.recipes.shared_base import check_shared_reward_model
from groundrule.recipes.step_line import step_line
from groundrule.recipes.train_rl import train_rl
from groundrule.rewards.jury import Juror, Jury
from groundrule.rewards.learned import LearnedReward
from groundrule.training.ppo_settings import PpoSettings
from named_judges import LongestIsBest
from tiny import tiny_model
from tiny_training import use_tiny_model, write_scenarios


@pytest.fixture
def ppo_training(monkeypatch, tmp_path):
    """`ppo_training(folder, steps=2, ppo={...})`: a configuration that trains in a second."""
    use_tiny_model(monkeypatch)
    monkeypatch.setattr("groundrule.backends.trainers.load_model", lambda name, *, device=None: tiny_model())
    source = write_scenarios(tmp_path / "scenarios.jsonl")

    def made(name: str, *, steps: int = 2, **ppo: object) -> TrainingConfig:
        return parse_config(
            {
                "scenarios": {"source": str(source)},
                "policy": {"base_model": "tiny", "max_tokens": 6, "temperature": 1.0},
                "train": {"steps": steps, "groups_per_step": 2, "group_size": 2},
                "ppo": {"lora": {"rank": 2}, "learning_rate": 0.01, **ppo},
                "run": {"folder": str(tmp_path / name), "name": "tiny"},
            }
        )

    return made


def train(config: TrainingConfig) -> list[dict]:
    """The metrics of every step."""
    run_sync(train_rl(config, scorer=LongestIsBest(), report=lambda line: None))
    with Run.open(config.folder, read_only=True) as run:
        return run.metrics()


def last_weights(config: TrainingConfig) -> dict[str, bytes]:
    folder = max((config.folder / "checkpoints").iterdir())
    return {p.name: p.read_bytes() for p in folder.glob("*.safetensors")}


def test_a_section_ppo_trains_with_a_critic(ppo_training):
    first, second = train(ppo_training("run"))

    assert first["ppo/trajectories"] == second["ppo/trajectories"] == 4
    assert "critic/loss" in second


def test_a_training_by_ppo_that_was_stopped_ends_with_the_same_bytes(ppo_training):
    train(ppo_training("whole", steps=3))
    train(ppo_training("parts", steps=1))
    train(ppo_training("parts", steps=3))

    assert last_weights(ppo_training("parts", steps=3)) == last_weights(ppo_training("whole", steps=3))


def test_models_apart_give_the_numbers_of_a_shared_base(ppo_training):
    [shared] = train(ppo_training("shared", steps=1))
    [apart] = train(ppo_training("apart", steps=1, apart=True))

    names = ("reward/mean", "ppo/kl_answer", "ppo/loss", "critic/loss", "critic/value_mean", "ppo/entropy")
    assert {n: apart[n] for n in names} == pytest.approx({n: shared[n] for n in names}, abs=1e-6)


def test_models_apart_leave_the_policy_to_itself(monkeypatch):
    use_tiny_model(monkeypatch)
    judged = pool.for_judging("tiny")

    assert pool.for_training("tiny", shared=False) is not judged
    assert pool.for_training("tiny") is judged


@pytest.mark.parametrize("key", ["learning_rate", "preset", "kl_coef", "lora_rank"])
def test_a_key_of_grpo_beside_ppo_is_refused(key):
    value = {"learning_rate": 1e-4, "preset": "dapo", "kl_coef": 0.1, "lora_rank": 8}[key]

    with pytest.raises(ConfigError, match=rf"train\.{key} belongs to GRPO, and \[ppo\] asks for PPO"):
        parse_config({"train": {key: value}, "ppo": {}})


def test_a_train_call_cannot_change_the_settings_of_ppo(monkeypatch, tmp_path):
    use_tiny_model(monkeypatch)
    backend = LocalBackend(path=tmp_path, settings=PpoSettings(lora=LoraSettings(rank=2)))
    model = TrainableModel(name="tiny", project="tests", base_model="tiny")

    async def change() -> None:
        try:
            await model.register(backend)
            await backend.train(model, [], learning_rate=1e-3)
        finally:
            await backend.close()

    with pytest.raises(ConfigError, match="train\\(\\) got 'learning_rate', but PPO keeps its settings"):
        run_sync(change())


def test_a_reward_model_of_another_tokenizer_is_refused_on_a_shared_base():
    policy, other = tiny_model(), tiny_model()
    other.tokenizer.add_tokens(["<another>"])
    scorer = LearnedReward(new_reward_model(other, LoraSettings(rank=2)))

    with pytest.raises(
        ConfigError, match="has another tokenizer than the policy tiny, and in PPO on a shared base"
    ):
        check_shared_reward_model(scorer, policy)


def test_a_reward_model_that_is_only_logged_may_read_what_it_likes():
    policy, other = tiny_model(), tiny_model()
    other.tokenizer.add_tokens(["<another>"])
    watched = LearnedReward(new_reward_model(other, LoraSettings(rank=2)))

    check_shared_reward_model(
        Jury([Juror("judge", LongestIsBest()), Juror("watched", watched, role="holdout")]), policy
    )


def test_a_reward_model_with_the_same_tokens_stands_on_the_shared_base():
    policy = tiny_model()

    check_shared_reward_model(LearnedReward(new_reward_model(policy, LoraSettings(rank=2))), policy)


def test_the_line_of_a_step_says_how_far_the_policy_has_gone():
    metrics = {
        "ppo/trajectories": 32.0,
        "ppo/updated": 1.0,
        "reward/mean": 0.5,
        "ppo/kl_answer": 1.25,
        "critic/explained_variance": 0.3,
    }

    assert step_line(2, 10, metrics, 61.2) == (
        "step 2/10: reward 0.500, KL 1.25 nats an answer, critic explains 0.30, 32 answers, 61 s"
    )


def test_the_line_of_a_warm_up_says_that_the_policy_stays():
    metrics = {"ppo/trajectories": 2.0, "ppo/updated": 0.0, "reward/mean": 0.5, "ppo/kl_answer": 0.0}

    assert step_line(1, 10, metrics, 1.0).startswith(
        "step 1/10: reward 0.500, KL 0.00 nats an answer, the policy stays"
    )
