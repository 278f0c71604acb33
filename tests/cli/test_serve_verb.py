"""`groundrule serve`, as a program of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from groundrule.models.lora import LoraSettings
from groundrule.recipes.served_model import load_served
from groundrule.recipes.serving import ServeSettings, serve
from groundrule.training.checkpoints import save_checkpoint
from groundrule.training.lora_trainer import LoraTrainer, TrainerSettings
from made_up_runs import attempt
from tiny import tiny_model, tiny_network, tiny_tokenizer

ASK = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, "temperature": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model on disk."""
    made = tmp_path_factory.mktemp("models") / "tiny-on-disk"
    tiny_network().save_pretrained(made)
    tiny_tokenizer().save_pretrained(made)
    return made


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program with its line, once it is ready."""
    command = [sys.executable, "-m", "groundrule", "serve", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        yield process, line or process.stderr.read()
    finally:
        process.kill()
        process.communicate()


def test_the_program_answers_by_key_and_name_until_sigterm_which_lets_a_running_answer_finish(
    folder, tmp_path
):
    (tmp_path / "key").write_text("sesame\n")
    options = ["--port", 0, "--device", "cpu", "--name", "mine", "--api-key-file", tmp_path / "key"]
    with serving(folder, *options) as (process, line):
        assert line.startswith("serving mine at http://127.0.0.1:"), line
        base_url = line.split(" at ")[1].split(" ")[0]
        with httpx.Client(trust_env=False) as client:
            assert client.get(f"{base_url}/models").status_code == 401
            client.headers["authorization"] = "Bearer sesame"
            body = {**ASK, "model": "mine", "max_tokens": 300, "stream": True, "logit_bias": {"40": 100}}
            with client.stream("POST", f"{base_url}/chat/completions", json=body) as reply:
                lines = (each for each in reply.iter_lines() if each)
                next(lines)
                process.send_signal(signal.SIGTERM)
                assert list(lines)[-1] == "data: [DONE]"
        assert process.wait(20) == 0


def test_without_a_key_the_line_says_that_none_is_needed(folder):
    said: list[str] = []

    def ready(line: str) -> None:
        said.append(line)
        os.kill(os.getpid(), signal.SIGTERM)

    serve(str(folder), ServeSettings(port=0, device="cpu"), report=ready)
    assert said[0].startswith("serving tiny-on-disk at http://127.0.0.1:")
    assert "(no key needed, this machine only)" in said[0]


def test_a_port_in_use_ends_with_1_before_the_model_is_loaded(groundrule):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = groundrule("serve", "no-such-model", "--port", port)
    assert (done.code, done.err) == (
        1,
        f"error: port {port} on 127.0.0.1 is in use; name another with --port, or 0 for a free one\n",
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_machines_are_let_in_only_with_a_key(groundrule, monkeypatch, host):
    monkeypatch.delenv("GROUNDRULE_API_KEY", raising=False)
    done = groundrule("serve", "no-such-model", "--host", host)
    assert (done.code, "needs a key: set GROUNDRULE_API_KEY or give --api-key-file" in done.err) == (2, True)


@pytest.mark.parametrize("content", ["", "two words", "clé"])
def test_a_key_file_without_a_usable_key_ends_with_2(groundrule, tmp_path, content):
    (tmp_path / "key").write_text(content, encoding="utf-8")
    done = groundrule("serve", "no-such-model", "--api-key-file", tmp_path / "key")
    assert (done.code, "must hold one line of ASCII characters" in done.err) == (2, True)


def test_a_missing_key_file_ends_with_2(groundrule, tmp_path):
    done = groundrule("serve", "no-such-model", "--api-key-file", tmp_path / "key")
    assert (done.code, f"the key file {tmp_path / 'key'} cannot be read" in done.err) == (2, True)


@pytest.fixture
def run_folder(folder: Path, tmp_path: Path) -> Path:
    """A run of one step whose adapter says something else than the base model."""
    import torch

    from groundrule.data.group import TrajectoryGroup
    from groundrule.data.runs import Run

    model = tiny_model()
    model.name = str(folder)
    trainer = LoraTrainer(model, TrainerSettings(lora=LoraSettings(rank=2)), seed=0)
    with torch.no_grad():
        for parameter in trainer.parameters.values():
            parameter.normal_(std=0.3, generator=torch.Generator().manual_seed(1))
    with Run.create(tmp_path / "runs" / "helper", {}) as run:
        save_checkpoint(trainer, run.checkpoint_folder(1), step=1)
        run.record_step(1, [TrajectoryGroup([attempt()])], {})
    return tmp_path / "runs" / "helper"


@pytest.mark.parametrize("inside", ["", "checkpoints/step-000001"], ids=["run", "checkpoint"])
def test_what_a_run_learned_is_served_under_its_name(run_folder, inside):
    served = load_served(str(run_folder / inside), device="cpu")
    assert (served.name, served.version) == ("helper", 1)
    assert hasattr(served.model.network, "peft_config")


def test_the_adapter_of_a_run_is_in_the_answers(run_folder, folder):
    import torch

    from groundrule.models.snapshot import snapshot

    served = load_served(str(run_folder), device="cpu").model
    plain = load_served(str(folder), device="cpu").model
    ids = torch.tensor([[1, 40, 41]])
    with torch.inference_mode():
        adapted, base = (
            snapshot(m).causal_lm(input_ids=ids, use_cache=False).logits for m in (served, plain)
        )
    assert float((adapted - base).abs().max()) > 0.1


def test_a_run_without_a_checkpoint_ends_with_1(groundrule, tmp_path):
    from groundrule.data.runs import Run

    Run.create(tmp_path / "run", {}).close()
    done = groundrule("serve", tmp_path / "run", "--port", 0)
    assert (done.code, "has no complete checkpoint yet" in done.err) == (1, True)


def test_a_model_that_is_not_there_ends_with_1(groundrule, tmp_path):
    (tmp_path / "empty").mkdir()
    done = groundrule("serve", tmp_path / "empty", "--port", 0)
    assert (done.code, "cannot be loaded as a folder" in done.err) == (1, True)
