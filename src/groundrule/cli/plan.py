"""`groundrule plan [MODEL]`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from groundrule.cli.tables import show

if TYPE_CHECKING:
    from groundrule.algorithms.memory_plan import PlanSettings
    from groundrule.recipes.plan import Answer

_AT_LEAST_1 = click.IntRange(min=1)


@click.command("plan")
@click.argument("model", required=False)
@click.option("--params", help="A number of parameters instead of a model: 7e9, 7B, 350M.")
@click.option(
    "--method", default="grpo-folded", show_default=True, help="ppo, ppo-shared, grpo, grpo-folded, dpo."
)
@click.option("--tuning", default="lora", show_default=True, type=click.Choice(["lora", "full"]))
@click.option("--precision", type=click.Choice(["fp32", "bf16"]), help="[fp32 on a CPU, bf16 on a GPU]")
@click.option("--device", type=click.Choice(["cpu", "gpu"]), help="[gpu where there is one]")
@click.option(
    "--optimizer", default="adamw", show_default=True, type=click.Choice(["adamw", "momentum", "sgd"])
)
@click.option("--lora-rank", default=16, show_default=True, type=_AT_LEAST_1)
@click.option("--prompt-tokens", default=512, show_default=True, type=_AT_LEAST_1, help="The longest prompt.")
@click.option("--answer-tokens", default=64, show_default=True, type=_AT_LEAST_1, help="The longest answer.")
@click.option("--group-size", default=8, show_default=True, type=_AT_LEAST_1, help="Answers to one prompt.")
@click.option("--groups", default=4, show_default=True, type=_AT_LEAST_1, help="Prompts in a step.")
@click.option(
    "--tokens-at-once",
    default=1024,
    show_default=True,
    type=_AT_LEAST_1,
    help="As in the trainer's settings.",
)
@click.option(
    "--gradient-checkpointing", is_flag=True, help="Keep one hidden state a layer, compute the rest again."
)
@click.option("--memory", help="What it has to fit into: 24GiB, 80GB. [what this machine has free now]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(
    model: str | None,
    params: str | None,
    method: str,
    device: str | None,
    memory: str | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Say how much memory training a MODEL takes, part by part, and whether it fits.

    MODEL is `smollm2-135m`, a folder or a Hugging Face id, of which only the configuration is read; with --params a
    shape between published models is taken. Nothing is loaded and nothing is run.
    """
    from groundrule.algorithms.memory_plan import method_named
    from groundrule.models.shapes import shape_of
    from groundrule.recipes.plan import parsed_memory, parsed_parameters, plan_for, this_memory

    if (model is None) == (params is None):
        raise click.UsageError("name a MODEL or give --params, one of the two: groundrule plan smollm2-135m")
    method_named(method)
    given = parsed_memory(memory) if memory else None
    settings = _settings(device, more)
    shape = parsed_parameters(params) if params else shape_of(str(model))
    answer = plan_for(shape, method, settings, given or this_memory(settings.device))
    if as_json:
        click.echo(json.dumps(answer.to_json(), ensure_ascii=False, indent=2))
    else:
        _print(answer)


def _settings(device: str | None, more: dict[str, Any]) -> PlanSettings:
    """What was asked for; unsaid, the device of this machine, and what `load_model` takes there."""
    from groundrule.algorithms.memory_plan import PlanSettings
    from groundrule.recipes.plan import has_gpu

    place = device or ("gpu" if has_gpu() else "cpu")
    precision = more.pop("precision") or ("bf16" if place == "gpu" else "fp32")
    return PlanSettings(device=place, precision=precision, **more)


def _print(answer: Answer) -> None:
    from groundrule.algorithms.memory_plan import method_named
    from groundrule.recipes.plan import gib, plan_table

    shape, settings, plan = answer.shape, answer.settings, answer.plan
    about = method_named(answer.method).about
    click.echo(
        f"{shape.name}: {shape.layers} layers of width {shape.hidden}, {shape.heads} heads on {shape.kv_heads} of "
        f"keys, feed-forward {shape.intermediate}, vocabulary {shape.vocabulary:,}"
    )
    click.echo(f"{answer.method}, {settings.tuning}, {settings.precision}, {settings.device}: {about}")
    models = "1 model" if plan.models == 1 else f"{plan.models} models"
    size = plan.parameters_total
    verdict = "fits into" if answer.fits else "does not fit into"
    show(
        [plan_table(answer)],
        [
            f"{models}, {f'{size / 1e9:.2f}B' if size >= 1e9 else f'{size / 1e6:.1f}M'} parameters in memory",
            f"most while {_WHILE[plan.peak]}: {gib(plan.bytes_total)}, which {verdict} {answer.memory}",
            *_advice(answer),
        ],
    )


_WHILE = {
    "update": "updating",
    "decoding": "decoding",
    "publishing": "a new version of the policy takes the place of the old one",
}


def _advice(answer: Answer) -> list[str]:
    """The one change that helps most often."""
    settings = answer.settings
    if answer.fits:
        return []
    if answer.plan.bytes_total <= answer.memory.total:
        return ["it would fit if other programs gave back what they hold"]
    if settings.precision == "fp32":
        return ["try --precision bf16, --gradient-checkpointing, or a smaller --tokens-at-once"]
    if settings.tuning == "full":
        return ["try --tuning lora"]
    return ["try --gradient-checkpointing, a smaller --tokens-at-once, or a method that shares weights"]
