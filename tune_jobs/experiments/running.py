"""Runs the commands of an experiment, each in a process of its own."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tune_jobs.experiments.checking import check_runs, check_trained
from tune_jobs.experiments.commands import Command, list_commands
from tune_jobs.experiments.definition import find_experiment, in_order, load_experiment
from tune_jobs.experiments.recording import Record
from tune_jobs.experiments.valid import Parse, check_commands
from tune_jobs.terminal.options import first_comment
from tune_jobs.terminal.stopping import StopRequest

REFUSED = 2
"""Exit status of a command that cannot be carried out as it was given."""


def make_all(
    out: Path, seeds: Sequence[int] | None, parse: Parse, dry_run: bool, force: bool = False
) -> None:
    """Makes the results of all named experiments, and says how far it is.

    Args:
        out: folder that holds a folder for each.
        seeds: see `make_results`; so are the rest and the errors.
        parse: see there.
        dry_run: see there.
        force: see there.
    """
    names = in_order()
    minutes = [load_experiment(name).minutes or 0 for name in names]
    for number, name in enumerate(names):
        click.secho(
            f"# {name}: {number + 1} of {len(names)} results, about {minutes[number]} of the "
            f"{sum(minutes[number:])} minutes that are left on two cores",
            bold=not dry_run,
        )
        make_results(name, out / name, seeds, parse, dry_run, force)


def make_results(
    source: str,
    out: Path,
    seeds: Sequence[int] | None,
    parse: Parse,
    dry_run: bool,
    force: bool = False,
) -> None:
    """Trains what is not trained yet, and gives the commands that follow and are not done.

    Args:
        source: name of an experiment, or path of a YAML file.
        out: folder of its runs, tables and figures; `tune_jobs.experiments.recording` says what
            else it gets.
        seeds: training seeds of all runs, instead of the experiment's.
        parse: reads a command line, see `check_commands`.
        dry_run: show the commands only.
        force: whether files may differ from the commit that the record will name.

    Raises:
        InputError: if the experiment cannot be used, the folder holds other runs than it says, or
            no commit holds the files that would make the results.
        click.exceptions.Exit: with the status of the first command that fails or is stopped.
    """
    commands = list_commands(load_experiment(source), out, seeds)
    check_commands(commands, out, parse)
    trained = {command.run: command for command in commands if command.run}
    record = Record(out, first_comment(find_experiment(source)), list(trained))
    if not (dry_run or force):
        record.check_commit()
    for command in trained.values():
        check_trained(command)
    for number, command in enumerate(commands, 1):
        place = f"[{number}/{len(commands)}] "
        if command.is_done() if command.run else record.is_done(command):
            what = command.run or command
            click.echo(f"# {'' if dry_run else place}{what} is done")
        elif dry_run:
            click.echo(command)
        else:
            click.secho(f"{place}{command}", bold=True)
            if not command.run:
                check_runs(command, trained)
                record.begin()
            status = _run(command)
            if status:
                if status != REFUSED:
                    click.echo("Give the same command again to go on from here.", err=True)
                raise click.exceptions.Exit(status)
            if not command.run:
                record.add(command)
    if not dry_run:
        if elsewhere := record.elsewhere():
            click.echo(
                f"Of {len(trained)} runs, {len(elsewhere)} are not known to be trained at this "
                f"commit alone; the page says where"
            )
        click.echo(f"Results  {record.close()}")


def _run(command: Command) -> int:
    """Runs a command and returns its exit status; a signal is passed on, so that it ends cleanly.

    The process gets a group of its own: else a terminal's Ctrl-C would reach it twice, and a
    second signal means to stop at once.
    """
    words = [sys.executable, "-m", "tune_jobs.cli", *command.words]
    process = subprocess.Popen(words, process_group=0)
    with StopRequest(lambda name: process.send_signal(signal.Signals[name])) as stop:
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    return stop.exit_status or status
