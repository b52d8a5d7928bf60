"""``metasched results``: trains, compares and draws what a recorded result rests on."""

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
) -> None:
    """Make the results of an experiment. NAME is a named one, a YAML file, or all.

    all makes the experiments of DeepRM's world, each in its own folder. Without NAME the
    experiments are listed.

    The command calls `train`, `compare`, `study`, `specialists`, `figure` and others, and shows
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
    """
    from tune_jobs.experiments.definition import in_order, load_experiment
    from tune_jobs.experiments.running import make_all, make_results

    options: dict[str, Any] = {
        "seeds": None if seeds is None else _parse_seeds(seeds),
        "dry_run": dry_run,
        "force": force,
        "at_once": at_once or min(num_local_cpus(), MOST_AT_ONCE),
    }
    if experiment is None:
        print_list(_experiments())
        minutes = sum(load_experiment(name).minutes or 0 for name in in_order())
        click.echo(f"all makes those of DeepRM's world, in about {minutes} minutes on two cores.")
    elif experiment == ALL:
        make_all(out or RESULTS, **options)
    else:
        make_results(experiment, out or RESULTS / Path(experiment).stem, **options)


def _parse_seeds(text: str) -> list[int]:
    if not all(part.strip().isdecimal() for part in text.split(",")):
        raise InputError(f"--seeds takes whole numbers like 0,1,2, not '{text}'")
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
