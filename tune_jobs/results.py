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
@click.argument("experiment", metavar="NAME", required=False)
@click.option(
    "--seeds",
    metavar="SEED,...",
    help="Training seeds of all runs; by default those of the experiment.",
)
@click.option(
    "--out",
    type=OutPath(file_okay=False),
    help="Folder for runs and figures; by default runs/results/NAME, and runs/results for all, "
    "where each experiment gets a folder of its own.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1),
    show_default=f"one per core of this machine, at most {MOST_AT_ONCE}",
    help="Runs to train side by side, each in one process of some 1.5 GB; 1 trains them one by "
    "one, each on the runners of its settings. Digits do not depend on it.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Go on although files differ from the commit that the record will name.",
)
@click.option("--dry-run", is_flag=True, help="Show the commands and run none.")
@list_option("--list", "the experiments that there are by name", _experiments)
def command(
    experiment: str | None,
    seeds: str | None,
    out: Path | None,
    at_once: int | None,
    force: bool,
    dry_run: bool,
) -> None:
    """Make the results of an experiment: NAME, or a YAML file that says what to run.

    all stands for all experiments in DeepRM's world, each in a folder of its own; without NAME the
    experiments are listed.

    It calls train, compare, study, specialists, figure and others as a user would, and shows the
    commands. It trains several runs at a time, and makes the other calls one after the other. Give
    it again after Ctrl-C or a crash: runs that are done are left as they are, and those that had
    begun go on from their last checkpoints.

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
