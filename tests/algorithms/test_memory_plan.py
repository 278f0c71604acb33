"""What a method needs in memory, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from groundrule.algorithms.memory_plan import ModelShape, PlanSettings, memory_plan, shape_for
from groundrule.algorithms.memory_plan.activations import (
    heap_bytes,
    kept_bytes,
    layer_token_bytes,
    logits_bytes,
)
from groundrule.algorithms.memory_plan.families import FAMILIES
from groundrule.algorithms.memory_plan.pieces import Pass, Piece, largest_piece
from groundrule.errors import ConfigError

SMALL = ModelShape("small", 30, 576, 9, 3, 64, 1536, 49_152, True, 134_515_008)
SEVEN = shape_for(7 * 10**9)
BILLION = 10**9


def parts_of(plan):
    return {part.name: part.bytes for part in plan.parts}


def test_a_7b_policy_under_ppo_means_about_28b_parameters():
    plan = memory_plan(SEVEN, "ppo", PlanSettings(tuning="full"))
    assert plan.models == 4
    # Two heads of one number a token; the width is 3968.
    assert plan.parameters_total == 28 * BILLION + 2 * 3968


@pytest.mark.parametrize(
    ("method", "models", "billions"),
    [("ppo", 4, 28), ("ppo-shared", 1, 7), ("grpo", 2, 14), ("grpo-folded", 1, 7), ("dpo", 1, 7)],
)
def test_models_of_a_method_with_lora(method, models, billions):
    plan = memory_plan(SEVEN, method)
    assert plan.models == models
    assert 0 < plan.parameters_total - billions * BILLION < 0.12 * BILLION


def test_full_dpo_needs_a_reference_of_its_own():
    assert memory_plan(SEVEN, "dpo", PlanSettings(tuning="full")).models == 2


def test_shared_ppo_has_one_base_three_adapters_and_two_heads():
    parts = memory_plan(SMALL, "ppo-shared").parts
    assert [(p.name, p.parameters) for p in parts if p.parameters] == [
        ("base weights", 134_515_008),
        ("policy adapter", 4_884_480),
        ("reward model adapter", 4_884_480),
        ("critic adapter", 4_884_480),
        ("reward model head", 576),
        ("critic head", 576),
    ]


def test_an_adapter_has_rank_times_inputs_and_outputs():
    # 16 x (1152 + 768 + 768 + 1152 + 2112 + 2112 + 2112) x 30
    assert SMALL.adapter_parameters(16, SMALL.linears) == 4_884_480
    assert SMALL.adapter_parameters(8, ["q_proj"]) == 276_480


def test_gradients_and_states_of_an_adapter_are_float32_also_beside_bf16_weights():
    parts = parts_of(memory_plan(SMALL, "grpo-folded", PlanSettings(precision="bf16")))
    assert parts["policy weights"] == 269_030_016
    assert parts["gradients"] == 19_537_920
    assert parts["optimizer states (adamw)"] == 39_075_840


def test_ppo_holds_gradients_of_one_role_at_a_time_and_states_of_both():
    parts = parts_of(memory_plan(SMALL, "ppo-shared"))
    assert parts["gradients"] == 4 * (4_884_480 + 576)  # the critic's: adapter and head
    assert parts["optimizer states (adamw)"] == 2 * 4 * (2 * 4_884_480 + 576)


def test_gradients_are_there_in_an_update_only():
    plan = memory_plan(SMALL, "grpo-folded")
    assert {part.name: part.moments for part in plan.parts}["gradients"] == ("update",)


def test_full_tuning_in_bf16_keeps_everything_in_bf16():
    parts = parts_of(memory_plan(SMALL, "grpo", PlanSettings(precision="bf16", tuning="full")))
    assert parts["gradients"] == 269_030_016
    assert parts["optimizer states (adamw)"] == 538_060_032


def test_a_layer_keeps_40428_bytes_of_a_token_with_lora_in_float32():
    # 4 x (4 x 576 + 2 x 576 + 2 x 192 + 4 x 1536 + 7 x 16 + 9 + 2)
    assert layer_token_bytes(SMALL, PlanSettings()) == 40_428


def test_beside_bf16_weights_every_adapter_keeps_its_input_in_float32():
    # norms 8 x 577; attention 2 x 1536 + 36; feed-forward 2 x 4608;
    # inputs 4 x (3 x 576 + 576 + 2 x 576 + 1536); inner 4 x 112
    assert layer_token_bytes(SMALL, PlanSettings(precision="bf16")) == 37_356


def test_a_group_that_fits_is_one_piece_with_its_prompt_once():
    piece = largest_piece(PlanSettings(groups=1))
    assert piece == Piece((Pass(1016),), 512)  # 512 + 8 x 63


def test_short_groups_go_through_together():
    piece = largest_piece(PlanSettings(prompt_tokens=100, answer_tokens=26, group_size=8, groups=9))
    assert piece == Piece((Pass(900),), 624)  # 100 + 8 x 25 = 300 tokens; three of nine fit


def test_a_group_that_does_not_fit_is_cut_behind_its_prompt():
    piece = largest_piece(PlanSettings(prompt_tokens=800, answer_tokens=301))
    assert piece == Piece((Pass(800), Pass(900, past=800)), 900)
    assert (piece.tokens, piece.cut) == (1700, 800)


def test_ppo_draws_fewer_answers_for_an_update_than_a_large_group_has():
    settings = PlanSettings(prompt_tokens=512, answer_tokens=64, group_size=16)
    assert largest_piece(settings).tokens == 1520  # cut: 512, and 16 x 63 behind it
    assert largest_piece(settings, minibatch=8) == Piece((Pass(1016),), 512)  # 512 + 8 x 63


def test_ppo_may_draw_answers_of_every_group():
    settings = PlanSettings(prompt_tokens=96, answer_tokens=48, group_size=8, groups=4)
    assert largest_piece(settings) == Piece((Pass(944),), 768)  # two groups of 96 + 8 x 47
    assert largest_piece(settings, minibatch=8) == Piece((Pass(760),), 384)  # 4 x 96 + 8 x 47


def test_an_update_of_the_whole_step_has_whole_groups():
    settings = PlanSettings(prompt_tokens=96, answer_tokens=48, group_size=8, groups=4)
    assert largest_piece(settings, minibatch=32) == largest_piece(settings)


def test_a_drawn_answer_that_is_too_long_by_itself_is_not_cut():
    settings = PlanSettings(prompt_tokens=3000, answer_tokens=200, group_size=1)
    assert largest_piece(settings, minibatch=2) == Piece((Pass(3199),), 200)


def test_ppo_plans_with_its_minibatch_and_grpo_with_the_step():
    settings = PlanSettings(prompt_tokens=96, answer_tokens=48, group_size=8, groups=4)
    assert "activations of 760 tokens" in parts_of(memory_plan(SMALL, "ppo-shared", settings))
    assert "activations of 944 tokens" in parts_of(memory_plan(SMALL, "grpo-folded", settings))


def test_a_single_answer_is_never_cut():
    piece = largest_piece(PlanSettings(prompt_tokens=3000, answer_tokens=200, group_size=1))
    assert piece == Piece((Pass(3199),), 200)


def test_activations_of_the_measured_update():
    settings = PlanSettings(groups=1)
    kept = kept_bytes(SMALL, settings, largest_piece(settings))
    # 30 x 1016 x 40428, positions 1016 x 512, one vector a scored token 512 x 2304
    assert kept == 1_232_245_440 + 520_192 + 1_179_648


def test_checkpointing_keeps_one_hidden_state_a_layer():
    settings = PlanSettings(groups=1, gradient_checkpointing=True)
    kept = kept_bytes(SMALL, settings, largest_piece(settings))
    # 30 x 1016 x 2304, and around the layers 1016 x (512 + 2308) + 512 x 2304
    assert kept == 70_225_920 + 2_865_120 + 1_179_648


def test_behind_a_cut_keys_and_values_from_before_are_copied_and_gather_gradients():
    settings = PlanSettings()
    plain, cut = Piece((Pass(800), Pass(900)), 900), Piece((Pass(800), Pass(900, past=800)), 900)
    # 800 tokens x 30 layers x 2 x 192 x 4 bytes, twice
    assert kept_bytes(SMALL, settings, cut) - kept_bytes(SMALL, settings, plain) == 2 * 36_864_000


def test_two_pieces_of_logits_exist_for_a_moment():
    # 2^24 / 49152 = 341 positions at once: 341 + 171 of 512
    assert logits_bytes(SMALL, PlanSettings(), Piece((Pass(1016),), 512)) == 512 * 49_152 * 4
    assert logits_bytes(SMALL, PlanSettings(), Piece((Pass(1016),), 5000)) == 682 * 49_152 * 4


def test_large_tensors_leave_nothing_unused_between_them():
    settings = PlanSettings()
    small = heap_bytes(SMALL, settings, Piece((Pass(1000),), 1))
    assert small == round(0.8 * 30 * 1000 * 40_428)
    # 6000 x 1536 x 4 is over 32 MiB and 6000 x 576 x 4 is not: without 4 x 1536 x 4 bytes a token.
    assert heap_bytes(SMALL, settings, Piece((Pass(6000),), 1)) == round(0.8 * 30 * 6000 * (40_428 - 24_576))
    assert heap_bytes(SMALL, settings, Piece((Pass(16_000),), 1)) == 0
    assert heap_bytes(SMALL, PlanSettings(device="gpu"), Piece((Pass(1000),), 1)) == 0


def test_a_packed_snapshot_has_every_linear_layer_and_the_output_layer():
    parts = parts_of(memory_plan(SMALL, "grpo-folded"))
    # 30 x (2 x 576 x 576 + 2 x 576 x 192 + 3 x 576 x 1536) + 49152 x 576 weights
    assert parts["snapshot of the policy for decoding"] == 4 * (106_168_320 + 28_311_552)
    on_gpu = parts_of(memory_plan(SMALL, "grpo-folded", PlanSettings(device="gpu", precision="bf16")))
    assert on_gpu["snapshot of the policy for decoding"] == 2 * 106_168_320


def test_keys_and_values_of_a_step():
    parts = parts_of(memory_plan(SMALL, "grpo-folded", PlanSettings(groups=1)))
    # 4 x 2 x 192 x 30 = 46080 bytes a token; prompt 512 and 8 answers of 63
    assert parts["keys and values kept of prompts and answers"] == 1016 * 46_080
    # the prompt twice, 8 rows x 128 columns twice, two sets of 8 x 49152 float32
    assert parts["keys, values and logits of the running batch"] == 3072 * 46_080 + 16 * 49_152 * 4


def test_the_total_is_what_is_there_at_the_worst_moment():
    plan = memory_plan(SEVEN, "grpo-folded", PlanSettings(device="gpu", precision="bf16"))
    assert plan.peak == "publishing"
    assert sum(part.bytes for part in plan.peak_parts) == plan.bytes_total == plan.moments["publishing"]
    alone = memory_plan(SEVEN, "dpo", PlanSettings(device="gpu", precision="bf16"))
    assert list(alone.moments) == ["update"]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("SmolLM2-135M", 134_515_008),
        ("SmolLM2-360M", 361_821_120),
        ("Llama-3.2-1B", 1_235_814_400),
        ("Llama-3.2-3B", 3_212_749_824),
        ("Llama-3.1-8B", 8_030_261_248),
        ("Llama-3.1-70B", 70_553_706_496),
        ("Llama-3.1-405B", 405_853_388_800),
    ],
)
def test_published_sizes_give_the_published_number_of_parameters(name, parameters):
    assert {p.name: p.parameters for p in FAMILIES}[name] == parameters


@pytest.mark.parametrize("parameters", [5e7, 1.35e8, 5e8, 1e9, 3e9, 7e9, 13e9, 32e9, 70e9, 200e9, 1e12])
def test_a_shape_has_about_the_parameters_that_were_given(parameters):
    shape = shape_for(int(parameters))
    linears = shape.linear_weights(shape.linears)
    embeddings = shape.vocabulary * shape.hidden * (1 if shape.tied else 2)
    assert (linears + embeddings) / parameters == pytest.approx(1, abs=0.05)
    assert shape.heads % shape.kv_heads == 0


def test_a_shape_says_what_it_lies_between():
    assert "between Llama-3.2-3B and Llama-3.1-8B" in SEVEN.name
    assert (SEVEN.layers, SEVEN.hidden, SEVEN.intermediate) == (31, 3968, 12_800)


def test_an_unknown_method_names_the_nearest_one():
    with pytest.raises(ConfigError, match="method 'gpro' is not known; did you mean 'grpo'"):
        memory_plan(SMALL, "gpro")


@pytest.mark.parametrize("method", ["ppo-shared", "grpo-folded"])
def test_folding_needs_an_adapter(method):
    with pytest.raises(ConfigError, match=f"method '{method}' with tuning 'full' is impossible.*'lora'"):
        memory_plan(SMALL, method, PlanSettings(tuning="full"))


@pytest.mark.parametrize("parameters", [0, 10, 10**14])
def test_a_number_that_is_no_model_is_refused(parameters):
    with pytest.raises(ConfigError, match="which no language model has"):
        shape_for(parameters)
