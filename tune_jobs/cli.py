"""The command line: ``metasched COMMAND``, or ``python -m tune_jobs.COMMAND``."""

import importlib
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

import click

from tune_jobs.commands.command_line import OptionsCommand
from tune_jobs.terminal.options import CONTEXT
from tune_jobs.terminal.running import add_debug_option, run

# Said here and not only in the modules, so that --help imports none of them.
GROUPS = {
    "Train": {
        "demo": "Train, compare, replay and adapt, in a few minutes.",
        "train": "Train a scheduler on Ray.",
        "tune": "Try many settings, on Ray Tune.",
        "adapt": "Adapt a trained policy to a task, in seconds.",
    },
    "Evaluate": {
        "compare": "Compare learned policies and heuristics on unseen jobsets.",
        "study": "Measure how runs adapt to unseen tasks, for figures.",
    },
    "A site's log": {
        "report": "Write a page about a log: who waits, and what would help.",
        "trace": "Describe a job log: span, users, sizes, estimates.",
        "replay": "Play a whole job log under policies, and compare them.",
        "whatif": "Compare a log as today with a changed machine or policy.",
        "generate": "Write generated jobs as a log.",
    },
    "At a site": {
        "shadow": "Print which jobs a policy would start at a live Slurm, and when.",
        "steer": "Let a policy decide which jobs a live Slurm starts.",
    },
    "Results": {
        "figure": "Draw a figure.",
        "results": "Repeat a recorded result: train, compare and draw.",
        "bench": "Measure throughput against a reference.",
    },
    "MLflow": {
        "ui": "Open MLflow in the browser.",
        "sync": "Send an MLflow server the records that it lacks.",
    },
}
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}


def find_command(name: str) -> OptionsCommand:
    """The command of a name of `COMMANDS`, imported now."""
    command = importlib.import_module(f"tune_jobs.{name}").command
    assert isinstance(command, OptionsCommand)
    return command


class LazyGroup(click.Group):
    """A group that imports the module of a command when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        return add_debug_option(find_command(cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command; an unknown one is answered with the nearest name."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from cluster_env.core.registry import unknown

            raise unknown("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands from `GROUPS`, importing none."""
        width = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), about) for name, about in commands.items()])


def _show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    try:
        number = version("metasched")
    except PackageNotFoundError:
        number = "(not installed; run make install)"
    click.echo(f"metasched {number}")
    if context.params.get("verbose"):
        from tune_jobs.tracking.provenance import of_a_bug

        for name, text in of_a_bug():
            click.echo(f"{name:<19} {text}")
    context.exit()


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.option(
    "--verbose",
    is_flag=True,
    is_eager=True,
    help="With --version: print all that a bug report needs.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def metasched(verbose: bool) -> None:
    """Train cluster schedulers on Ray, and compare them with the usual schedulers.

    \b
    Examples:
      metasched demo                               train, compare, replay and adapt
      metasched train deeprm --set task.workload.load=1.1
      metasched tune learning-rate                 search for the best settings
      metasched compare --policies sjf,tetris,runs/MY_RUN --loads 0.7,1.1
      metasched adapt runs/MY_RUN --task objective=makespan --steps 3
      metasched ui                                 show the runs in the browser

    'metasched COMMAND --help' explains a command.
    """


add_debug_option(metasched)


def main() -> NoReturn:
    """Entry point of the console script."""
    sys.exit(run(metasched))


if __name__ == "__main__":
    from tune_jobs import cli

    cli.main()
