"""Options that several commands have. It imports nothing heavy, so that --help is quick."""

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.files import try_writing

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}

COMPARISON_TABLE, COMPARISON_FIGURE = "comparison.csv", "comparison.png"
ADAPTATION_TABLE = "adaptation.csv"
SPECIALISTS_TABLE = "specialists.csv"

MOST = 1_000_000
"""Of what can be counted on a command line: of jobsets, more fit into no memory."""


class _Count(click.IntRange):
    """A whole number; only the least one is a part of the help.

    Args:
        least: the least one.
        most: the largest one.
    """

    def __init__(self, least: int, most: int) -> None:
        super().__init__(least)
        self._most = most

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """The number."""
        number: int = super().convert(value, param, ctx)
        if number > self._most:
            self.fail(f"{value} is more than {self._most}", param, ctx)
        return number


SEED = _Count(0, 2**63 - 1)


class _FiniteRange(click.FloatRange):
    """NaN lies in every range, because no comparison with it holds."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """The number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


POSITIVE = _FiniteRange(min=0, min_open=True)
ZERO_OR_MORE = _FiniteRange(min=0)


def count(least: int = 1) -> click.IntRange:
    """A whole number from the least one to `MOST`."""
    return _Count(least, MOST)


_FORCE = "tune_jobs.force"  # where the context of a command keeps it

OF_PLAN = "tune_jobs.of_plan"
"""What is set in the context of a call of ``results``, which refreshes the files of its folder."""


class OutPath(click.Path):
    """A file or folder that a command writes when its work is done; that it can is tried before.

    A single file must not be there, unless ``--force`` is given (`force_option`), and its folder
    must be there, so that a typing error neither costs a file nor hides one. Folders are made, and
    a command refreshes what it wrote there.
    """

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            try_writing(path, folder=not self.file_okay)
        except OSError as error:
            self.fail(f"cannot write to {path}: {error.strerror or error}", param, ctx)
        if not self.dir_okay and not (ctx and ctx.meta.get(OF_PLAN)):
            if not path.absolute().parent.is_dir():
                self.fail(f"cannot write {path}: there is no folder {path.parent}", param, ctx)
            if path.exists() and not (ctx and ctx.meta.get(_FORCE)):
                self.fail(f"{path} is there already; --force replaces it", param, ctx)
        return path


Decorator = Callable[[Any], Any]


def _keep_force(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[_FORCE] = value


force_option = click.option(
    "--force",
    is_flag=True,
    is_eager=True,  # before the file is looked at
    expose_value=False,
    callback=_keep_force,
    help="Replace the file if it is there.",
)
"""Beside an `OutPath` of a single file."""


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator; --help shows them in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def set_option(example: str, what: str = "it") -> Decorator:
    """The option ``--set`` of a command.

    Args:
        example: of what is given.
        what: is changed.
    """
    return click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        help=f"Change a setting of {what}, for instance {example}.",
    )


def seed_option(what: str) -> Decorator:
    """The option ``--seed``, by default 0, of something."""
    return click.option("--seed", type=SEED, default=0, help=f"Seed of {what}.")


def decode_option(default: str, *more: str, help_text: str) -> Decorator:
    """The option ``--decode``: how policies choose; ``sample``, ``argmax``, or `more`."""
    choices = click.Choice(["sample", "argmax", *more])
    return click.option("--decode", type=choices, default=default, help=help_text)


def keep_option(default: str, help_text: str) -> Decorator:
    """The option ``--keep``: the best step of an adaptation, or the last."""
    choices = click.Choice(["best", "last"])
    return click.option("--keep", type=choices, default=default, help=help_text)


def out_option(help_text: str) -> Decorator:
    """The option ``--out``: a folder for what a command writes."""
    return click.option("--out", type=OutPath(file_okay=False), help=help_text)


warmup_option = click.option(
    "--warmup",
    type=count(0),
    help="Measure steady operation: leave out the jobs that arrive in this many steps at the "
    "beginning and at the end of the arrival period. By default 0; for recorded jobs a sixth.",
)

limit_option = click.option(
    "--limit",
    "limits",
    metavar="METRIC=SHARE",
    multiple=True,
    help="Share by which a metric of a guarded policy may be worse than the reference's, for "
    "instance wait=0.5; off removes the limit. Can be repeated.",
)

runners_option = click.option(
    "--runners",
    "num_runners",
    type=count(0),
    default=0,
    help="Processes that evaluate policies in parallel; 0 evaluates in this process.",
)

runner_options = together(
    runners_option,
    click.option(
        "--address",
        metavar="HOST:PORT",
        help="Ray cluster for the runners, or auto; by default they run on this machine.",
    ),
)

task_options = together(
    click.option(
        "--config",
        "source",
        metavar="PRESET|FILE",
        help="World, jobs and objective; by default those of the first run, else those of deeprm.",
    ),
    set_option("task.objective=makespan"),
    warmup_option,
    click.option(
        "--jobsets",
        "num_jobsets",
        type=count(),
        default=1000,
        help="Unseen jobsets at each value.",
    ),
    click.option(
        "--episodes",
        "num_episodes",
        type=count(),
        default=1,
        help="Episodes of each jobset.",
    ),
    seed_option("the jobsets and of the policies' random numbers"),
    decode_option(
        "sample",
        "tuned",
        help_text="How learned policies choose: sample draws an action; argmax takes the "
        "likeliest, and may leave jobs waiting for ever; tuned is argmax with an eagerness to "
        "start jobs that is tuned on validation jobsets.",
    ),
)
"""What policies are evaluated on."""

log_options = together(
    click.argument("path", metavar="FILE", type=click.Path(path_type=Path)),
    set_option("task.workload.stretch=0.5", "the machine or of reading the log"),
    click.option(
        "--hash-users", is_flag=True, help="Replace users and groups by hashes in all output."
    ),
)
"""A log."""

step_options = together(
    click.option(
        "--episodes",
        "num_episodes",
        type=count(2),
        default=20,
        help="Episodes of a step, over its jobsets.",
    ),
    click.option("--jobsets", "num_jobsets", type=count(), default=4, help="Jobsets of a step."),
)
"""What a step of adaptation plays."""

held_out_option = click.option(
    "--evaluate",
    "num_held_out",
    type=count(),
    default=100,
    help="Held-out jobsets of a task; costs are means over them.",
)
"""What a policy is evaluated on after adaptation."""

at_option = click.option(
    "--at",
    metavar="VALUE,...",
    help="Values of the setting that comparisons of the world vary, for instance 0.7,1.1; by "
    "default the value of the config. A trace has its own value.",
)

cluster_options = together(
    click.option(
        "--address",
        metavar="HOST:PORT",
        help="Ray cluster to train on, or auto; by default Ray is started on this machine.",
    ),
    click.option("--no-track", is_flag=True, help="Do not record anything in MLflow."),
    click.option(
        "--tracking-uri",
        metavar="URI",
        help="MLflow server or other database that gets a copy; by default MLFLOW_TRACKING_URI.",
    ),
)
"""Where training happens, and where it is recorded."""


def print_list(entries: Iterable[tuple[str, str]]) -> None:
    """Prints names, each with a line about it."""
    formatter = click.HelpFormatter(width=100)
    formatter.write_dl(list(entries))
    click.echo(formatter.getvalue(), nl=False)


def list_option(
    flag: str, what: str, entries: Callable[[], Iterable[tuple[str, str]]]
) -> Decorator:
    """A flag that lists names with a line about each, and ends the command.

    Args:
        flag: such as ``--presets``.
        what: is listed; the help says so.
        entries: gives names and lines, when they are asked for.
    """

    def show(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not context.resilient_parsing:
            print_list(entries())
            context.exit()

    return click.option(
        flag,
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help=f"List {what} and exit.",
    )


def first_comment(path: Path) -> str:
    """The first paragraph of the comment at the top of a YAML file, as one line."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)
