"""``metasched figure``: a figure of a paper, or of ours."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cluster_env.core.errors import InputError
from tune_jobs.cli import CONTEXT
from tune_jobs.compare import at_option, task_options

if TYPE_CHECKING:
    from tune_jobs.comparing.policy_specs import Decode


def _list_figures(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from tune_jobs.figures import FIGURES

    formatter = click.HelpFormatter(width=100)
    formatter.write_dl([(name, FIGURES.get(name).about) for name in FIGURES.names()])
    click.echo(formatter.getvalue(), nl=False)
    context.exit()


@click.command(name="figure", context_settings=CONTEXT)
@click.argument("name", required=False)
@click.option(
    "--runs",
    metavar="RUN,...",
    multiple=True,
    help="Run directories and globs of them; can be repeated.",
)
@click.option(
    "--rows",
    metavar="FOLDER",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder that metasched study wrote; the adaptation figures alone need it.",
)
@at_option
@task_options
@click.option(
    "--time-limit",
    "time_limit_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=12.0,
    help="Time to search for the best schedule of each jobset; optimality-gap alone needs it.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("figures"),
    help="Folder for the image and the CSV file that it is drawn from.",
)
@click.option(
    "--table",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw this CSV file of an earlier call again, instead of collecting anew.",
)
@click.option(
    "--track",
    is_flag=True,
    help="Record image and table in MLflow, beside the first of --runs, else beside --out.",
)
@click.option(
    "--list",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_list_figures,
    help="List the figures and exit.",
)
def command(
    name: str | None,
    runs: tuple[str, ...],
    rows: tuple[Path, ...],
    at: list[float],
    source: str | None,
    overrides: tuple[str, ...],
    rules: str | None,
    window: int | None,
    warmup: int,
    jobsets: int,
    episodes: int,
    seed: int,
    decode: "Decode",
    time_limit_s: float,
    out: Path,
    table: Path | None,
    track: bool,
) -> None:
    """Draw a figure. NAME is one of those that --list shows.

    Runs that differ in their seed alone make one line.

    \b
    Examples:
      metasched figure --list
      metasched figure deeprm-fig4 --jobsets 100
      metasched figure deeprm-fig4 --runs 'runs/deeprm-*' --out figures
      metasched figure deeprm-fig6 --runs runs/MY_RUN
      metasched figure deeprm-fig5 --runs 'runs/*-1.3-*' --jobsets 200
      metasched figure win-rate --window 500 --warmup 100 --jobsets 100
      metasched figure optimality-gap --runs 'runs/deeprm-*' --jobsets 40
      metasched figure adaptation --rows adaptation --out runs/figures --track
    """
    from tune_jobs.comparing.policy_specs import split_names
    from tune_jobs.figures import FIGURES, FigureRequest, make_figure
    from tune_jobs.terminal.progress import Progress

    if name is None:
        raise InputError(f"say which figure: {', '.join(FIGURES.names())}")
    request = FigureRequest(
        runs=split_names(runs),
        rows=rows,
        at=at,
        source=source,
        overrides=overrides,
        rules=rules,
        window=window,
        warmup=warmup,
        num_jobsets=jobsets,
        num_episodes=episodes,
        seed=seed,
        decode=decode,
        time_limit_s=time_limit_s,
        progress=Progress(),
    )
    image, csv = make_figure(name, request, out, table)
    click.echo(f"Wrote {image}, drawn from {csv}")
    if track:
        from tune_jobs.comparing.policy_specs import find_runs
        from tune_jobs.tracking.recording import record_figure

        record_figure(image, csv, *find_runs(request.runs)[:1])


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
