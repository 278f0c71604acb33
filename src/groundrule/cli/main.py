"""`groundrule VERB ...`: finds the verb's file, and turns errors into one readable line and an exit code.

Exit codes: 0 done, 1 the work failed, 2 wrong input.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import Any, NoReturn

import click

import groundrule
from groundrule.errors import CheckpointError, ConfigError, DataError, GroundRuleError, RunError

VERBS = {
    "checklist": ("checklist", "List the demands of a system prompt, to edit and to judge by."),
    "constitution": (
        "constitution",
        "Critiques, revisions and preferences by written principles, and a model that learns them.",
    ),
    "demo": (
        "demo",
        "Train the embedded model on the built-in support questions and report what it learned.",
    ),
    "demo-rlvr": ("demo_rlvr", "Train the embedded model on sums by a verifier alone."),
    "doctor": ("doctor", "Say why a run learned nothing, or too little."),
    "judge-eval": (
        "judge_eval",
        "Measure a judge on answers of known order, or look for reward hacking in a run.",
    ),
    "learn-prompt": (
        "learn_prompt",
        "Learn lessons below a system prompt from the judge's words, each tested before it is kept.",
    ),
    "models": ("models", "Fetch and list the models that need no hub."),
    "plan": ("plan", "Say how much memory a training takes, and whether it fits."),
    "prefs": ("prefs", "Make, check and convert preferences, from people or from the groups of a run."),
    "prompt": ("prompt", "Read the versions of a learned prompt, where each comes from, and go back to one."),
    "rank": ("rank", "Let a person put answers into order, in a web page on this machine."),
    "reward-bench": ("reward_bench", "Measure a reward function on labelled answers before training on it."),
    "rlhf": (
        "rlhf",
        "Rankings, reward model, PPO or DPO, and a comparison with the start, as a TOML file says.",
    ),
    "rubric": ("rubric", "Make a rubric of a system prompt and a task, and say what is weak in it."),
    "score": ("score", "Score the groups of a JSONL file with a judge."),
    "serve": ("serve", "Answer OpenAI-compatible requests with a model, or with what a run learned."),
    "sft": ("sft", "Warm a model up on conversations that show how to answer."),
    "train": ("train", "Train a model as a TOML file says; the same command resumes an interrupted run."),
    "verify": ("verify", "Score the answers of a JSONL file with a verifier or any other reward."),
    "view": ("view", "Write report.html for a run folder."),
}
"""Verb -> (file in this folder, one line of help). Its function is named `command`."""


class Verbs(click.Group):
    """A group that knows its verbs without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"groundrule.cli.{VERBS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, VERBS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(groundrule.__version__, prog_name="groundrule")
@click.option("-v", "--verbose", is_flag=True, help="Show what the library logs.")
def cli(verbose: bool) -> None:
    """Train LLM agents with reinforcement learning; the reward is the agent's own system prompt."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(levelname)s: %(message)s"
    )
    for noisy in ("httpx", "httpx2", "openai", "transformers", "peft"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


NEEDED_FOR_TRAINING = frozenset(
    {
        "gguf",
        "llguidance",
        "peft",
        "prometheus_client",
        "safetensors",
        "starlette",
        "torch",
        "transformers",
        "uvicorn",
    }
)


def main(arguments: list[str] | None = None) -> None:
    """The entry point; never shows a traceback for a user's mistake."""
    try:
        # Outside its standalone mode click returns the code of `Exit` instead of raising it.
        sys.exit(cli.main(args=arguments, standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except CheckpointError as error:
        _fail(error, 1)
    except (ConfigError, DataError, RunError) as error:
        _fail(error, 2)
    except GroundRuleError as error:
        _fail(error, 1)
    except (click.Abort, KeyboardInterrupt):
        click.echo(
            "stopped; a training goes on from its last complete step when the same command is run again",
            err=True,
        )
        sys.exit(130)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in NEEDED_FOR_TRAINING:
            raise
        _fail(f"{error.name} is not installed; run: pip install 'groundrule[train]'", 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at exit.
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror}", 1)


def _fail(error: Any, code: int) -> NoReturn:
    click.echo(f"error: {error}", err=True)
    sys.exit(code)
