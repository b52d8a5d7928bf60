"""Runs the commands of an experiment, each in a process of its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from tune_jobs.experiments.checking import check_place, check_runs, check_trained
from tune_jobs.experiments.commands import Command, list_commands
from tune_jobs.experiments.definition import find_experiment, in_order, load_experiment
from tune_jobs.experiments.processes import run_one, run_several
from tune_jobs.experiments.recording import Record
from tune_jobs.experiments.valid import Parse, check_commands
from tune_jobs.terminal.options import first_comment

REFUSED = 2
"""Exit status of a command that cannot be carried out as it was given."""


def make_all(
    out: Path,
    seeds: Sequence[int] | None,
    parse: Parse,
    dry_run: bool,
    force: bool = False,
    at_once: int = 1,
) -> None:
    """Makes the results of all named experiments, and says how far it is.

    Args:
        out: folder that holds a folder for each.
        seeds: see `make_results`; so are the rest and the errors.
        parse: see there.
        dry_run: see there.
        force: see there.
        at_once: see there.
    """
    names = in_order()
    minutes = [load_experiment(name).minutes or 0 for name in names]
    for number, name in enumerate(names):
        click.secho(
            f"# {name}: {number + 1} of {len(names)} results, about {minutes[number]} of the "
            f"{sum(minutes[number:])} minutes that are left on two cores",
            bold=not dry_run,
        )
        make_results(name, out / name, seeds, parse, dry_run, force, at_once)


def make_results(
    source: str,
    out: Path,
    seeds: Sequence[int] | None,
    parse: Parse,
    dry_run: bool,
    force: bool = False,
    at_once: int = 1,
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
        at_once: how many runs to train side by side.

    Raises:
        InputError: if the experiment cannot be used, the folder holds other runs than it says or
            those of several experiments, or no commit holds the files that would make the results.
        click.exceptions.Exit: with the status of the first command that fails or is stopped.
    """
    check_place(source, out)
    commands = list_commands(load_experiment(source), out, seeds)
    check_commands(commands, out, parse)
    trained = {command.run: command for command in commands if command.run}
    record = Record(out, first_comment(find_experiment(source)), list(trained))
    if not (dry_run or force):
        record.check_commit()
    for command in trained.values():
        check_trained(command)
    places = {command: f"[{n}/{len(commands)}] " for n, command in enumerate(commands, 1)}
    waiting: list[Command] = []
    for command in trained.values():
        if command.is_done():
            click.echo(f"# {'' if dry_run else places[command]}{command.run} is done")
        elif dry_run:
            click.echo(command)
        else:
            waiting.append(command)
    if waiting:
        _train(waiting, places, at_once)
    for command in (command for command in commands if not command.run):
        if record.is_done(command):
            click.echo(f"# {'' if dry_run else places[command]}{command} is done")
        elif dry_run:
            click.echo(command)
        else:
            check_runs(command, trained)
            record.begin()
            click.secho(f"{places[command]}{command}", bold=True)
            _end_unless_done(run_one(command.words))
            record.add(command)
    if not dry_run:
        if elsewhere := record.elsewhere():
            click.echo(
                f"Of {len(trained)} runs, {len(elsewhere)} are not known to be trained at this "
                f"commit alone; the page says where"
            )
        click.echo(f"Results  {record.close()}")


def _train(commands: Sequence[Command], places: Mapping[Command, str], at_once: int) -> None:
    """Trains runs: several side by side, each in one process, or one by one on its own runners."""
    if min(at_once, len(commands)) > 1:
        lines = {
            f"{places[command]}{_name(command)}": (*command.words, "--runners", "0")
            for command in commands
        }
        _end_unless_done(run_several(lines, at_once))
        return
    for command in commands:
        click.secho(f"{places[command]}{command}", bold=True)
        _end_unless_done(run_one(command.words))


def _name(command: Command) -> str:
    assert command.run is not None
    return command.run.name


def _end_unless_done(status: int) -> None:
    if status:
        if status != REFUSED:
            click.echo("Give the same command again to go on from here.", err=True)
        raise click.exceptions.Exit(status)
