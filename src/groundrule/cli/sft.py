"""`groundrule sft EXAMPLES.jsonl`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("sft")
@click.argument("examples", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder for the new model.")
@click.option("--base-model", default="smollm2-135m", show_default=True, help="Name, folder or hub id.")
@click.option("--epochs", default=1, show_default=True, type=click.IntRange(min=1))
@click.option("--learning-rate", default=2e-4, show_default=True, type=click.FloatRange(min=0, min_open=True))
@click.option("--examples-per-step", default=8, show_default=True, type=click.IntRange(min=1))
@click.option("--lora-rank", default=16, show_default=True, type=click.IntRange(min=1))
@click.option("--device", help="cpu, cuda, mps. [the best that is there]")
@click.option("--seed", default=0, show_default=True, help="Decides adapter and order.")
def command(
    examples: Path,
    out: Path,
    base_model: str,
    epochs: int,
    learning_rate: float,
    examples_per_step: int,
    lora_rank: int,
    device: str | None,
    seed: int,
) -> None:
    """Warm a model up on conversations that show how to answer, and write it to a folder of its own.

    A line of EXAMPLES holds `messages` (or is a group or trajectory as run folders have them); its assistant turns are
    learned, nothing else. The folder can be policy.base_model of a training, or be served.
    """
    from groundrule.data.records import read_groups
    from groundrule.models.lora import LoraSettings
    from groundrule.recipes.sft import train_sft
    from groundrule.training.sft import SftSettings

    conversations = [member for group in read_groups(examples) for member in group]
    settings = SftSettings(
        learning_rate=learning_rate,
        epochs=epochs,
        examples_per_step=examples_per_step,
        lora=LoraSettings(rank=lora_rank, alpha=2 * lora_rank),
    )
    facts = train_sft(
        conversations, base_model, out, settings=settings, seed=seed, device=device, report=click.echo
    )
    first, last = facts["losses"][0], facts["losses"][-1]
    click.echo(f"loss {first:.4f} -> {last:.4f} over {facts['examples']} examples -> {out}")
