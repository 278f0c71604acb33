"""`groundrule models pull NAME` and `groundrule models list`."""

from __future__ import annotations

import click


@click.group("models")
def command() -> None:
    """Fetch and list the models that need no hub."""


@command.command("pull")
@click.argument("name", default="smollm2-135m")
def pull(name: str) -> None:
    """Fetch a model by NAME and convert it once; quick when it is already there."""
    from groundrule.errors import ConfigError
    from groundrule.models import embedded

    if name != embedded.NAME:
        raise ConfigError(
            f"{name!r} is not an embedded model; the embedded one is {embedded.NAME!r}. "
            "Hugging Face ids and folders need no pull: name them as policy.base_model"
        )
    click.echo(f"{name}: {embedded.pull()}")


@command.command("list")
def list_models() -> None:
    """Show the embedded models and whether they are here."""
    from groundrule.models import embedded

    click.echo(f"{embedded.NAME}\t{embedded.embedded_folder() if embedded.is_pulled() else 'not pulled'}")
