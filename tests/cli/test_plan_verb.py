"""`groundrule plan`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from transformers import LlamaConfig


def test_the_articles_arithmetic_as_json(groundrule):
    result = groundrule("plan", "--params", "7e9", "--method", "ppo", "--memory", "80GB", "--json")
    found = json.loads(result.out)
    assert result.code == 0
    assert found["models"] == 4
    assert round(found["parameters_total"] / 1e9) == 28
    assert found["fits"] is False
    assert found["memory_bytes"] == 80_000_000_000
    assert sum(part["bytes"] for part in found["parts"]) == found["bytes_total"]
    assert sum(part["parameters"] for part in found["parts"]) == found["parameters_total"]
    assert found["parts"][0] == {
        "name": "policy weights",
        "parameters": 7_000_000_000,
        "bytes": 28_000_000_000,
    }


def test_a_table_for_a_reader(groundrule):
    result = groundrule("plan", "smollm2-135m", "--memory", "24GiB", "--device", "cpu")
    assert result.code == 0
    lines = [line.split("  ") for line in result.out.splitlines()]
    assert any(line[0] == "policy weights" and "134,515,008" in line for line in lines)
    assert "1 model, 139.4M parameters in memory" in result.out
    assert "which fits into 24.00 GiB given" in result.out


def test_the_machines_own_memory_is_looked_at(groundrule):
    found = json.loads(groundrule("plan", "--params", "1e6", "--device", "cpu", "--json").out)
    assert found["memory"]["kind"] == "ram"
    assert 0 < found["memory_bytes"] <= found["memory"]["total_bytes"]


def test_a_folder_needs_no_weights(groundrule, tmp_path):
    LlamaConfig(
        vocab_size=100, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, tie_word_embeddings=True,
    ).save_pretrained(tmp_path / "model")  # fmt: skip
    found = json.loads(groundrule("plan", tmp_path / "model", "--method", "dpo", "--json").out)
    assert found["model"]["parameters"] == 18_720
    assert found["models"] == 1


def test_what_does_not_fit_comes_with_advice(groundrule):
    said = groundrule("plan", "--params", "7B", "--memory", "24GiB", "--precision", "fp32").out
    assert "does not fit into 24.00 GiB given" in said
    assert "--precision bf16" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a MODEL or give --params"),
        (["smollm2-135m", "--params", "7e9"], "one of the two"),
        (["--params", "7e9", "--method", "pp0"], "method 'pp0' is not known; did you mean 'ppo'"),
        (["--params", "many"], "--params is 'many'"),
        (["--params", "7e9", "--memory", "lots"], "--memory is 'lots'"),
        (["--params", "7e9", "--method", "grpo-folded", "--tuning", "full"], "choose tuning 'lora'"),
        (["--params", "7e9", "--group-size", "0"], "--group-size"),
    ],
)
def test_wrong_input_is_named(groundrule, arguments, said):
    result = groundrule("plan", *arguments)
    assert result.code == 2
    assert said in result.err


def test_numbers_and_memory_given_need_no_torch():
    program = (
        "import sys; from click.testing import CliRunner; from groundrule.cli.main import cli; "
        "done = CliRunner().invoke(cli, ['plan', '--params', '7e9', '--device', 'cpu', '--memory', '80GB']); "
        "assert done.exit_code == 0, done.output; assert 'torch' not in sys.modules; "
        "assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
