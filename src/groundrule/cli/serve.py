"""`groundrule serve MODEL`."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command("serve")
@click.argument("model")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Beyond this machine only with a key.")
@click.option("--name", help="The model name in requests. [MODEL, or the name of the run]")
@click.option(
    "--api-key-file", type=click.Path(path_type=Path), help="A file with the key that clients must send."
)
@click.option(
    "--max-rows", default=64, show_default=True, type=click.IntRange(min=1), help="Answers decoded at once."
)
@click.option(
    "--max-waiting",
    default=1024,
    show_default=True,
    type=click.IntRange(min=1),
    help="Answers that may wait for a place; more are refused.",
)
@click.option(
    "--context-tokens",
    type=click.IntRange(min=1),
    help="Most tokens of prompt and answer. [the model's own limit]",
)
@click.option("--device", help="cpu, cuda or mps. [the best that is there]")
@click.option(
    "--grace-s",
    default=30,
    show_default=True,
    type=click.IntRange(min=0),
    help="Seconds that running answers get when the server is told to stop.",
)
def command(
    model: str,
    port: int,
    host: str,
    name: str | None,
    api_key_file: Path | None,
    max_rows: int,
    max_waiting: int,
    context_tokens: int | None,
    device: str | None,
    grace_s: int,
) -> None:
    """Answer OpenAI-compatible requests with MODEL until told to stop.

    MODEL is a name (smollm2-135m), a Hugging Face id, a model folder, or a run or checkpoint folder, which is served
    with the adapter that it holds. Clients must send the key of GROUNDRULE_API_KEY or of --api-key-file; without one
    this machine alone is answered, and needs none.
    """
    from groundrule.recipes.serving import ServeSettings, serve

    serve(
        model,
        ServeSettings(
            host=host,
            port=port,
            name=name,
            api_key=_key(api_key_file),
            max_rows=max_rows,
            max_waiting=max_waiting,
            context_tokens=context_tokens,
            device=device,
            grace_s=grace_s,
        ),
        report=lambda line: print(line, flush=True),
    )


def _key(path: Path | None) -> str | None:
    """The key from the file, or else from the environment; never from the command line, where others see it."""
    from groundrule.errors import ConfigError

    if path is None:
        return os.environ.get("GROUNDRULE_API_KEY") or None
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the key file {path} cannot be read: {error}") from error
    if not key or not key.isascii() or len(key.split()) > 1:
        raise ConfigError(f"the key file {path} must hold one line of ASCII characters without spaces")
    return key
