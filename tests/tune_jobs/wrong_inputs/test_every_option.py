"""Every option of every command: a wrong value is refused before work begins."""

import shlex
import shutil
from pathlib import Path

import click
import pytest

from cluster_env.worlds import WORLDS
from tests.tune_jobs.wrong_inputs.conftest import Accepted, Refuse, replace_work
from tune_jobs import cli
from tune_jobs.commands.task_command import TaskCommand
from tune_jobs.figures import FIGURES

CONTEXT = click.Context(cli.metasched)
COMMANDS = {name: cli.metasched.get_command(CONTEXT, name) for name in cli.COMMANDS}

RIGHT = {
    "adapt": "adapt runs/scorer --task objective=makespan",
    "bench": "bench simulator",
    "compare": "compare --policies sjf",
    "demo": "demo --runs new",
    "figure": "figure deeprm-fig4",
    "generate": "generate new.csv",
    "replay": "replay site.csv --processors 8",
    "report": "report site.csv --processors 8 --out new",
    "results": "results deeprm --out new --force",
    "shadow": "shadow fcfs:easy",
    "steer": "steer fcfs:easy",
    "study": "study runs/joint",
    "sync": "sync tracked/run --tracking-uri http://127.0.0.1:9",
    "trace": "trace site.csv --processors 8",
    "train": "train deeprm-smoke --run new --runners 0",
    "tune": "tune smoke --out new",
    "ui": "ui --runs tracked",
    "whatif": "whatif site.csv --processors 8 --change policy=sjf:easy",
}
"""A command line of each command that is right, so that the command begins to work."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_right_command_line_reaches_a_place_where_work_begins(
    command: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made, tmp_path / "copy", ignore=shutil.ignore_patterns("pipe"))
    monkeypatch.chdir(tmp_path / "copy")
    replace_work(monkeypatch)
    with pytest.raises(Accepted):
        cli.run(cli.metasched, shlex.split(RIGHT[command]))


WRONG = {
    "change": "nosuch=3",
    "limit": "nosuch=0.1",
    "out": "file/below",
    "run": "file",
    "runs": "file",
    "set": "nosuch=1",
    "tracking-uri": "foo://x",
}
"""What is wrong for options that a path to nowhere is not wrong for."""

NOWHERE = "no/such"
OF_WORLDS = sorted(
    {name for world in WORLDS.names() for name in WORLDS.get(world).presentation.options}
)
AT_A_SITE = ("shadow", "steer")
"""Only a live Slurm can say that it has no such ``--partition``."""


def wrong_value(param: click.Parameter) -> str:
    """A value that an option refuses; what has a type refuses it by its type."""
    name = param.opts[0].lstrip("-")
    low = getattr(param.type, "min", None)
    if isinstance(param.type, click.Choice):
        return "nosuch"
    return WRONG.get(name, NOWHERE) if low is None else str(low - 1)


def options_of(command: str) -> list[tuple[str, str]]:
    """Options of a command, and those of worlds that it takes, each with a wrong value."""
    entry = COMMANDS[command]
    own = {
        param.opts[0].lstrip("-"): wrong_value(param)
        for param in entry.params
        if isinstance(param, click.Option) and not param.is_flag
    }
    worlds = OF_WORLDS if isinstance(entry, TaskCommand) else ()
    options = dict.fromkeys(worlds, NOWHERE) | own
    if command in AT_A_SITE:
        options.pop("partition")
    return list(options.items())


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [(command, *option) for command in COMMANDS for option in options_of(command)],
)
def test_a_wrong_value_is_refused_before_work_begins(
    command: str, option: str, value: str, refuse: Refuse
) -> None:
    refuse(f"{RIGHT[command]} --{option} {value}")


NEEDS = {"runs": "runs/joint", "trace": "site.csv", "rows": "empty"}
WRONG_OF_FIGURES = {"set": "nosuch=1", "config": NOWHERE, "limit": "nosuch=0.1", "at": "x"}


@pytest.mark.parametrize(
    ("figure", "option"),
    [
        (name, option)
        for name in FIGURES.names()
        for option in FIGURES.get(name).options
        if option in WRONG_OF_FIGURES
    ],
)
def test_a_wrong_value_of_a_figure_is_refused_before_work_begins(
    figure: str, option: str, refuse: Refuse
) -> None:
    inputs = [f"--{name} {NEEDS[name]}" for name in FIGURES.get(figure).options if name in NEEDS]
    refuse(f"figure {figure} {' '.join(inputs)} --{option} {WRONG_OF_FIGURES[option]}")
