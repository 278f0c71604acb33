"""Reward models: what they read, and that on disk they stay what they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from openai.types.chat.chat_completion import Choice

from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.errors import CheckpointError, ConfigError
from groundrule.llm import registry
from groundrule.models import pool, reward_judge
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, using_adapter
from groundrule.models.reward_files import load_reward_model, save_reward_model
from groundrule.models.reward_model import RewardModel, new_reward_model
from groundrule.models.tree import Path as TokenPath
from groundrule.rewards.jury import Juror, Jury
from groundrule.rewards.learned import Conversation, LearnedReward, Value, ValueScale
from groundrule.rewards.ruler import Ruler
from tiny import END, tiny_model, tiny_network

ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Refunds?"}]
SMALL = LoraSettings(rank=4, alpha=8)


def made(model: LanguageModel | None = None, *, seed: int = 0) -> RewardModel:
    """A reward model with random weights, which values answers between about -1 and 1."""
    reward_model = new_reward_model(model or tiny_model(), SMALL)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in reward_model.parameters().values():
            parameter.copy_(torch.randn(parameter.shape, generator=random) * 0.1)
    reward_model.scale = ValueScale(mean=0.25, deviation=0.5)
    return reward_model


def said(*answers: str) -> list[Conversation]:
    return [Conversation([*ASK, {"role": "assistant", "content": text}]) for text in answers]


def raw(reward_model: RewardModel, *answers: str) -> list[float]:
    return [v.raw for v in reward_model.values(said(*answers)) if isinstance(v, Value)]


def group(*answers: str) -> TrajectoryGroup:
    return TrajectoryGroup([Trajectory(messages_and_choices=list(c.messages)) for c in said(*answers)])


def test_the_value_is_the_head_on_the_state_of_the_end_marker() -> None:
    reward_model = made()
    path = reward_model.path(said("Yes.")[0].messages)
    assert isinstance(path, TokenPath)

    with using_adapter(reward_model.model, reward_model.adapter), torch.no_grad():
        hidden = reward_model.model.core(
            input_ids=torch.tensor([path.read]), use_cache=False
        ).last_hidden_state[0, -1]

    assert path.read[-1] == END
    assert raw(reward_model, "Yes.") == pytest.approx([float(reward_model.head(hidden).detach())], abs=1e-5)


def test_the_values_of_several_answers_are_those_of_each_alone() -> None:
    reward_model = made()

    together = raw(reward_model, "Yes.", "No.", "Yes, on a lead.", "No.")

    apart = [raw(reward_model, text)[0] for text in ("Yes.", "No.", "Yes, on a lead.", "No.")]
    assert together == pytest.approx(apart, abs=1e-5)


def test_a_new_one_values_everything_at_0() -> None:
    assert raw(new_reward_model(tiny_model(), SMALL), "Yes.", "No.") == [0.0, 0.0]


def test_what_comes_after_the_agent_s_last_turn_is_not_read() -> None:
    reward_model = made()
    [one] = said("Yes.")
    more = Conversation([*one.messages, {"role": "user", "content": "Thanks."}])

    assert reward_model.values([more]) == reward_model.values([one])


def test_a_sampled_answer_is_read_from_its_text_whatever_its_tokens() -> None:
    choice = Choice.model_validate(
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Yes."},
            "prompt_token_ids": [7],
            "token_ids": [9],
        }
    )
    sampled = TrajectoryGroup([Trajectory(messages_and_choices=[*ASK, choice])])
    judge = LearnedReward(made())

    assert judge.score_now(sampled) == judge.score_now(group("Yes."))


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (ASK, "no assistant message to judge"),
        ([*ASK, {"role": "assistant", "content": " "}], "the answer is empty"),
        (
            [*ASK, {"role": "assistant", "content": "y" * 600}],
            "the conversation has 647 tokens and the reward model on tiny reads 512",
        ),
        (
            [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
                {"role": "assistant", "content": "A dog."},
            ],
            "the reward model refused",
        ),
    ],
)
def test_what_cannot_be_valued_has_a_reason_and_the_others_their_values(messages, reason) -> None:
    fine, found = made().values([said("Yes.")[0], Conversation(messages)])

    assert isinstance(fine, Value)
    assert isinstance(found, str) and found.startswith(reason)


def test_two_reward_models_on_one_base_do_not_disturb_each_other() -> None:
    model = tiny_model()
    wanted = [raw(made(seed=seed), "Yes.", "No.") for seed in (1, 2)]

    first, second = made(model, seed=1), made(model, seed=2)

    assert (first.adapter, second.adapter) == ("reward", "reward-2")
    assert [raw(first, "Yes.", "No."), raw(second, "Yes.", "No.")] == wanted


def test_saved_and_loaded_it_gives_the_same_scores(tmp_path: Path) -> None:
    saved = made()
    save_reward_model(saved, tmp_path / "reward", training={"steps": 3})

    loaded = load_reward_model(tmp_path / "reward", model=tiny_model())

    assert LearnedReward(loaded).score_now(group("Yes.", "No.")) == LearnedReward(saved).score_now(
        group("Yes.", "No.")
    )
    assert loaded.scale == ValueScale(mean=0.25, deviation=0.5)


def test_loaded_onto_a_base_in_use_it_changes_nothing_there(tmp_path: Path) -> None:
    save_reward_model(made(), tmp_path / "reward")
    model = tiny_model()
    ids = torch.tensor([[1, 30, 31]])

    load_reward_model(tmp_path / "reward", model=model)

    with torch.inference_mode():
        found = model.head(model.core(input_ids=ids, use_cache=False).last_hidden_state)
        wanted = tiny_network()(input_ids=ids, use_cache=False).logits
    assert torch.allclose(found, wanted, atol=1e-5)


def test_the_folder_holds_plain_files_that_say_what_they_are(tmp_path: Path) -> None:
    save_reward_model(made(), tmp_path / "reward", training={"steps": 3})

    facts = json.loads((tmp_path / "reward" / "reward_model.json").read_text())
    assert sorted(path.name for path in (tmp_path / "reward").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "head.safetensors",
        "manifest.json",
        "reward_model.json",
    ]
    assert (facts["base_model"], facts["width"], facts["training"]) == ("tiny", 32, {"steps": 3})
    assert (facts["lora"]["rank"], facts["scale"]) == (4, {"mean": 0.25, "deviation": 0.5})


def test_saving_again_replaces_a_reward_model_and_nothing_else(tmp_path: Path) -> None:
    save_reward_model(made(seed=1), tmp_path / "reward")
    save_reward_model(made(seed=2), tmp_path / "reward")
    (tmp_path / "thesis").mkdir()

    again = load_reward_model(tmp_path / "reward", model=tiny_model())
    assert raw(again, "Yes.") == raw(made(seed=2), "Yes.")
    with pytest.raises(ConfigError, match="thesis exists and is no reward model"):
        save_reward_model(made(), tmp_path / "thesis")


@pytest.mark.parametrize("name", ["head.safetensors", "adapter_model.safetensors", "reward_model.json"])
def test_a_changed_or_missing_file_is_named(tmp_path: Path, name: str) -> None:
    save_reward_model(made(), tmp_path / "reward")
    path = tmp_path / "reward" / name

    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=rf"{name} is not what manifest\.json says"):
        load_reward_model(tmp_path / "reward", model=tiny_model())
    path.unlink()
    with pytest.raises(CheckpointError, match=rf"{name} is missing"):
        load_reward_model(tmp_path / "reward", model=tiny_model())


def test_another_base_is_refused(tmp_path: Path) -> None:
    save_reward_model(made(), tmp_path / "reward")
    other = tiny_model()
    other.name = "other"

    with pytest.raises(CheckpointError, match="was trained on 'tiny', the model in memory is 'other'"):
        load_reward_model(tmp_path / "reward", model=other)
    assert raw(load_reward_model(tmp_path / "reward", model=other, base_model="other"), "Yes.") == raw(
        made(), "Yes."
    )


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a saved reward model whose base is in the pool."""
    monkeypatch.setattr(pool, "load_model", lambda name, *, device=None: tiny_model())
    monkeypatch.setattr(pool, "_models", {})
    monkeypatch.setattr(reward_judge, "_loaded", {})
    save_reward_model(made(), tmp_path / "reward")
    return f"local/reward-model/{tmp_path / 'reward'}"


async def test_it_is_a_judge_by_the_name_of_its_folder(named: str) -> None:
    scores = await Ruler(named).score(group("Yes.", "No."))

    expected = LearnedReward(made()).score_now(group("Yes.", "No."))
    assert [s.value for s in scores] == pytest.approx([s.value for s in expected])


async def test_it_is_a_juror(named: str) -> None:
    jury = Jury([Juror("learned", Ruler(named)), Juror("fresh", LearnedReward(made()))])

    scores = await jury.score(group("Yes.", "No."))

    expected = LearnedReward(made()).score_now(group("Yes.", "No."))
    assert [s.value for s in scores] == pytest.approx([s.value for s in expected])


def test_named_twice_it_is_loaded_once_and_again_after_it_was_trained_again(
    named: str, tmp_path: Path
) -> None:
    first, second = registry.make(named), registry.make(named)
    save_reward_model(made(seed=1), tmp_path / "reward")
    third = registry.make(named)

    assert first.model is second.model
    assert third.model is not first.model
    assert raw(third.model, "Yes.") == raw(made(seed=1), "Yes.")


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("local/reward-model", {}, "names no folder; write 'local/reward-model/FOLDER'"),
        ("local/reward-model/nowhere", {}, "is not a judge: nowhere has no readable manifest"),
        ("local/reward-model/nowhere", {"seed": 1}, "got seed=1; its only parameter is base_model"),
    ],
)
def test_a_name_that_is_no_reward_model_is_refused(
    name: str, params: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        registry.make(name, params)
