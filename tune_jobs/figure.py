"""``metasched figure``: a figure of a paper, or of ours."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    POSITIVE,
    OutPath,
    at_option,
    limit_option,
    list_option,
    runners_option,
    task_options,
)
from tune_jobs.terminal.task_command import TaskCommand


def _figures() -> list[tuple[str, str]]:
    from tune_jobs.figures import FIGURES

    return [(name, FIGURES.get(name).about) for name in FIGURES.names()]


@click.command(name="figure", cls=TaskCommand, context_settings=CONTEXT)
@click.argument("name", required=False)
@click.option(
    "--runs",
    metavar="RUN,...",
    multiple=True,
    help="Run directories and globs of run directories; can be repeated.",
)
@click.option(
    "--rows",
    metavar="FOLDER",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder that metasched study wrote, for figures of adaptation; can be repeated.",
)
@click.option(
    "--trace",
    "traces",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Job log, for figures of job logs; can be repeated. The figure sites takes folders, too.",
)
@at_option
@task_options
@limit_option
@click.option(
    "--time-limit",
    "time_limit_s",
    metavar="SECONDS",
    type=POSITIVE,
    default=12.0,
    help="Time to search for the best schedule of a jobset, for figures that need it.",
)
@runners_option
@click.option(
    "--out",
    type=OutPath(file_okay=False),
    default=Path("figures"),
    help="Folder for the image and the CSV file that it is drawn from.",
)
@click.option(
    "--table",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw this CSV file of an earlier call, instead of measuring again.",
)
@click.option(
    "--track",
    is_flag=True,
    help="Record image and table in MLflow: in the store beside the first of --runs, else beside "
    "--out.",
)
@list_option("--list", "the figures", _figures)
@click.pass_context
def command(
    context: click.Context,
    /,
    name: str | None,
    out: Path,
    table: Path | None,
    track: bool,
    **_: Any,
) -> None:
    """Draw a figure. --list shows the names.

    Runs that differ only in their seed share one line. Options that the figure does not use are
    refused.

    \b
    Examples:
      metasched figure --list
      metasched figure deeprm-fig4 --jobsets 100
      metasched figure deeprm-fig4 --runs 'runs/deeprm-*' --out figures
      metasched figure learning-curves --runs runs/MY_RUN
      metasched figure deeprm-fig5 --runs 'runs/*-1.3-*' --jobsets 200
      metasched figure win-rate --window 500 --warmup 100 --jobsets 100
      metasched figure optimality-gap --runs 'runs/deeprm-*' --jobsets 40
      metasched figure adaptation --rows adaptation --out runs/figures --track
    """
    from tune_jobs.figures.drawing import given_options, report_figure

    report_figure(name, out, table, track, **given_options(context))


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
