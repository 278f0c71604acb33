"""The plan's arithmetic is that of the code it speaks of; and what a machine has."""

from __future__ import annotations

import pytest
import torch

from groundrule.algorithms.memory_plan import PlanSettings, activations, decoding, memory_plan
from groundrule.algorithms.memory_plan.pieces import largest_piece
from groundrule.algorithms.memory_plan.settings import ALL_LINEARS
from groundrule.errors import ConfigError
from groundrule.models import chosen, decoder, tree_attention
from groundrule.models import decoding as running
from groundrule.models.critic import new_critic
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter
from groundrule.models.shapes import shape_from
from groundrule.models.snapshot import snapshot
from groundrule.models.tree import Path, token_tree
from groundrule.models.tree_forward import Past, forward, place
from groundrule.models.tree_pass import _alone
from groundrule.recipes.plan import _ram, parsed_memory, parsed_parameters, update_plan
from groundrule.training.lora_trainer import TrainerSettings
from groundrule.training.ppo_settings import PpoSettings
from ppo import group as answers
from ppo import shake, trainer
from tiny import tiny_model


def model_and_shape(precision):
    model = tiny_model()
    if precision == "bf16":
        model.network.to(torch.bfloat16)
    shape = shape_from(model.causal_lm.config, "tiny")
    add_adapter(model, LoraSettings(rank=4), seed=0)
    return model, shape


def group(prompt, answers, tokens):
    """Answers that differ from their first token on."""
    return token_tree(
        [
            Path(
                (*[5] * prompt, *[6 + i] * tokens),
                tuple(range(prompt, prompt + tokens)),
            )
            for i in range(answers)
        ]
    )


def kept(model, work):
    """Bytes that `work` keeps for the way back, weights aside; and what it returned."""
    storages, weights = {}, {p.untyped_storage().data_ptr() for p in model.network.parameters()}

    def note(tensor):
        if tensor.is_floating_point():
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        result = work()
    return sum(s.nbytes() for at, s in storages.items() if at not in weights), result


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_activations_are_those_that_autograd_keeps(precision):
    model, shape = model_and_shape(precision)
    settings = PlanSettings(
        prompt_tokens=20, answer_tokens=9, group_size=3, groups=1, lora_rank=4, precision=precision
    )
    tree = group(20, 3, 9)
    found, _ = kept(model, lambda: forward(model, place(tree.roots), Past()))
    piece = largest_piece(settings)
    assert piece.tokens == tree.unique_tokens == 44
    assert found == pytest.approx(activations.kept_bytes(shape, settings, piece), rel=0.002)


def test_a_critic_keeps_what_a_policy_keeps():
    model, shape = model_and_shape("fp32")
    critic = new_critic(model, LoraSettings(rank=4), seed=0)
    settings = PlanSettings(prompt_tokens=20, answer_tokens=9, group_size=3, groups=1, lora_rank=4)
    tree = group(20, 3, 9)
    with critic.switched_on():
        found, _ = kept(model, lambda: forward(model, place(tree.roots), Past(), read=critic.read))
    assert found == pytest.approx(activations.kept_bytes(shape, settings, largest_piece(settings)), rel=0.002)


def test_gradients_of_policy_and_critic_are_never_there_together():
    made = trainer()
    shake(made.parameters, 3)
    together = []
    with made.critic.switched_on():
        for parameter in made.critic_parameters.values():
            parameter.register_post_accumulate_grad_hook(
                lambda _: together.append(any(p.grad is not None for p in made.parameters.values()))
            )
    made.step([answers(made, [0.0, 1.0])])
    assert set(together) == {False}
    assert all(p.grad is None for p in (*made.parameters.values(), *made.critic_parameters.values()))


def test_a_cut_group_keeps_its_prompt_and_one_piece_behind_it():
    model, shape = model_and_shape("fp32")
    settings = PlanSettings(
        prompt_tokens=40, answer_tokens=17, group_size=3, groups=1, lora_rank=4, tokens_at_once=50
    )
    (root,) = group(40, 3, 17).roots
    above, whole = kept(model, lambda: forward(model, place([_alone(root)]), Past(), keep=True))
    leaves = whole.leaves()
    below, _ = kept(model, lambda: forward(model, place(root.children), leaves))
    gradients = sum(t.nbytes for t in (*leaves.keys, *leaves.values))
    expected = activations.kept_bytes(shape, settings, largest_piece(settings))
    assert above + below + gradients == pytest.approx(expected, rel=0.01)


def test_adapter_and_snapshot_have_the_planned_sizes():
    model, shape = model_and_shape("fp32")
    trained = sum(p.numel() for p in adapter_parameters(model).values())
    assert trained == shape.adapter_parameters(4, ALL_LINEARS)
    known = {p.untyped_storage().data_ptr() for p in model.network.parameters()}
    plain = snapshot(model, packed=False).network.parameters()
    own = sum(p.nbytes for p in plain if p.untyped_storage().data_ptr() not in known)
    on_gpu = PlanSettings(device="gpu")
    assert own == decoding.snapshot_bytes(shape, on_gpu)


def test_limits_are_those_of_the_code():
    assert activations.LOGITS_AT_ONCE == chosen.LOGITS_AT_ONCE
    assert activations.SCORES_AT_ONCE == tree_attention.SCORES_AT_ONCE
    assert (decoding.ROOM, decoding.CACHE_BYTES) == (running.ROOM, decoder.CACHE_BYTES)
    assert PlanSettings().tokens_at_once == TrainerSettings().tokens_at_once
    assert PlanSettings().trajectories_per_update == PpoSettings().trajectories_per_update
    assert PlanSettings().lora_rank == TrainerSettings().lora.rank
    assert PlanSettings().lora_targets == TrainerSettings().lora.targets


@pytest.mark.parametrize(
    ("prompt", "tokens", "lean", "measured_mib"),
    [(512, 64, False, 2303), (96, 48, False, 1106), (512, 64, True, 1125)],
)
def test_an_update_needs_what_was_measured(prompt, tokens, lean, measured_mib):
    """benchmarks/results/grpo_step_trl.json: `above_loaded_mb`, so weights and adapter are not in it.

    The share that the allocator wastes was fitted to the same three; the rest was not.
    """
    shape = parsed_parameters("134515008")
    trainer = TrainerSettings(gradient_checkpointing=lean)
    plan = update_plan(shape, trainer, prompt_tokens=prompt, answer_tokens=tokens, group_size=8, groups=1)
    above_loaded = sum(part.bytes for part in plan.parts if not part.parameters)
    assert above_loaded / 2**20 == pytest.approx(measured_mib, rel=0.05)


@pytest.mark.parametrize(
    ("method", "groups", "prompt", "tokens", "measured_mib"),
    [
        ("ppo-shared", 4, 96, 48, 1993.7),
        ("ppo", 4, 96, 48, 3576.0),
        ("grpo-folded", 4, 96, 48, 1911.9),
        ("ppo-shared", 2, 512, 64, 2043.2),
        ("ppo", 2, 512, 64, 3626.0),
        ("grpo-folded", 2, 512, 64, 1960.5),
    ],
)
def test_ppo_and_grpo_need_what_was_measured_where_nothing_lies_unused(
    method, groups, prompt, tokens, measured_mib
):
    """benchmarks/results/ppo_memory.json, `mapped`: nothing in the plan was fitted to these."""
    shape = parsed_parameters("134515008")
    settings = PlanSettings(
        prompt_tokens=prompt,
        answer_tokens=tokens,
        groups=groups,
        trajectories_per_update=8 * groups,
        decodes=False,
    )
    parts = memory_plan(shape, method, settings).parts
    planned = sum(part.bytes for part in parts if not part.name.startswith("unused"))
    assert planned / 2**20 == pytest.approx(measured_mib, rel=0.06)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("24GiB", 24 * 2**30),
        ("24 gib", 24 * 2**30),
        ("80GB", 80 * 10**9),
        ("80G", 80 * 10**9),
        ("1000", 1000),
    ],
)
def test_a_memory_is_read(text, size):
    assert parsed_memory(text).total == size


@pytest.mark.parametrize("text", ["", "much", "-3GB", "24QB", "0", "1e999GB"])
def test_what_is_no_memory_is_refused(text):
    with pytest.raises(ConfigError, match=r"--memory is .*write it as 24GiB"):
        parsed_memory(text)


@pytest.mark.parametrize(("text", "size"), [("7e9", 7 * 10**9), ("7B", 7 * 10**9), ("350M", 350 * 10**6)])
def test_a_number_of_parameters_is_read(text, size):
    assert parsed_parameters(text).parameters == size


def test_a_container_has_what_its_limit_leaves(tmp_path):
    proc = tmp_path / "meminfo"
    proc.write_text("MemTotal: 8000 kB\nMemFree: 1 kB\nMemAvailable: 5000 kB\n")
    assert _ram(proc, tmp_path).free == 5000 * 1024
    (tmp_path / "memory.max").write_text("4096000\n")
    (tmp_path / "memory.current").write_text("96000\n")
    found = _ram(proc, tmp_path)
    assert (found.total, found.free) == (4_096_000, 4_000_000)


def test_a_container_without_a_limit_has_the_machine(tmp_path):
    proc = tmp_path / "meminfo"
    proc.write_text("MemTotal: 8000 kB\nMemAvailable: 5000 kB\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert _ram(proc, tmp_path).total == 8000 * 1024
