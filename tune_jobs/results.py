"""``metasched results``: trains, compares and draws what a recorded result rests on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cluster_env.core.errors import InputError
from tune_jobs.terminal.options import CONTEXT, OutPath, first_comment, list_option, print_list
from tune_jobs.terminal.running import num_local_cpus

ALL = "all"
RESULTS = Path("runs/results")
MOST_AT_ONCE = 8


def _experiments() -> list[tuple[str, str]]:
    from tune_jobs.experiments.definition import NAMED, experiment_names, load_experiment

    minutes = {name: load_experiment(name).minutes for name in experiment_names()}
    return [
        (name, f"{first_comment(NAMED / f'{name}.yaml')} About {some} minutes on two cores.")
        for name, some in minutes.items()
    ]


@click.command(name="results", context_settings=CONTEXT)
@click.argument("experiment", metavar="[NAME]", required=False)
@click.option(
    "--seeds",
    metavar="SEED,...",
    help="Training seeds of all runs; by default those of the experiment.",
)
@click.option(
    "--out",
    type=OutPath(file_okay=False),
    help="Folder for runs and figures; by default runs/results/NAME. With all, each experiment has "
    "its own folder below runs/results.",
)
@click.option(
    "--logs",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Folder of job logs, for sites, site-adaptation and cunha. Files that are none are named "
    "and left out.",
)
@click.option(
    "--max-wait",
    metavar="TIME|xN",
    help="Bound on waits, for sites: a time such as 5d, 0 for none, or x2, twice the longest wait "
    "of fcfs:easy in the earlier half of each log, which is the default.",
)
@click.option(
    "--policy",
    metavar="RUN,...",
    multiple=True,
    help="Run directories beside heuristics and shipped policies, for sites; can be repeated.",
)
@click.option(
    "--processors",
    metavar="NAME=N,...",
    multiple=True,
    help="Processors of the machine of a log, for sites; by default those of its header, else as "
    "many as were in use at once. Can be repeated.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1),
    show_default=f"one per core of this machine, at most {MOST_AT_ONCE}",
    help="Runs to train in parallel, each in one process of about 1.5 GB; 1 trains them one by "
    "one, each with the runners of its settings. The results do not depend on it.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Continue even if files differ from the commit that the record names.",
)
@click.option("--dry-run", is_flag=True, help="Show the commands and run none.")
@list_option("--list", "the named experiments", _experiments)
def command(
    experiment: str | None,
    seeds: str | None,
    out: Path | None,
    at_once: int | None,
    force: bool,
    dry_run: bool,
    logs: str | None,
    max_wait: str | None,
    policy: Sequence[str],
    processors: Sequence[str],
) -> None:
    """Make the results of an experiment. NAME is a named one, a YAML file, or all.

    all makes the experiments of DeepRM's world, each in its own folder. Without NAME the
    experiments are listed.

    The command calls `train`, `compare`, `study`, `figure` and others, and shows
    each call. It trains several runs in parallel, and makes the other calls one by one. After
    Ctrl-C or a crash, repeat the command: finished runs stay as they are, and the others resume
    from their last checkpoints.

    \b
    Examples:
      metasched results --list
      metasched results deeprm --dry-run
      metasched results deeprm --seeds 0
      metasched results all
      metasched results my-experiment.yaml --out runs/mine
      metasched results sites --logs FOLDER --policy runs/mine --processors philly=2490
    """
    from tune_jobs.experiments.definition import in_order, load_experiment
    from tune_jobs.experiments.running import make_all, make_results

    options: dict[str, Any] = {
        "seeds": None if seeds is None else _parse_seeds(seeds),
        "dry_run": dry_run,
        "force": force,
        "at_once": at_once or min(num_local_cpus(), MOST_AT_ONCE),
    }
    said = {"logs": logs, "max-wait": max_wait}
    said |= {"policy": ",".join(policy), "processors": ",".join(processors)}
    given = {name: text for name, text in said.items() if text}
    if given and experiment in (None, ALL):
        raise InputError(f"--{next(iter(given))} is for one experiment, so name it")
    if experiment is None:
        print_list(_experiments())
        minutes = sum(load_experiment(name).minutes or 0 for name in in_order())
        click.echo(f"all makes those of DeepRM's world, in about {minutes} minutes on two cores.")
    elif experiment == ALL:
        make_all(out or RESULTS, **options)
    else:
        make_results(experiment, out or RESULTS / Path(experiment).stem, **options, given=given)


def _parse_seeds(text: str) -> list[int]:
    if not all(part.strip().isdecimal() for part in text.split(",")):
        raise InputError(f"--seeds takes whole numbers like 0,1,2, not '{text}'")
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
