"""``metasched results``: trains, compares and draws what a recorded result rests on."""

from dataclasses import replace

import click

from tune_jobs.commands import command_line
from tune_jobs.commands.results import Results
from tune_jobs.terminal.options import first_comment, print_list
from tune_jobs.terminal.running import num_local_cpus

ALL = "all"
MOST_AT_ONCE = 8


def _experiments() -> list[tuple[str, str]]:
    from tune_jobs.experiments.definition import NAMED, experiment_names, load_experiment

    minutes = {name: load_experiment(name).minutes for name in experiment_names()}
    return [
        (name, f"{first_comment(NAMED / f'{name}.yaml')} About {some} minutes on two cores.")
        for name, some in minutes.items()
    ]


@command_line.command("results", Results)
def command(options: Results) -> None:
    """Make the results of an experiment. NAME is a named one, a YAML file, or all.

    all makes the experiments of DeepRM's world, each in its own folder. Without NAME the
    experiments are listed.

    The command calls `train`, `compare`, `study`, `figure` and others, and shows
    each call. It trains several runs in parallel, and makes the other calls one by one. After
    Ctrl-C or a crash, repeat the command: finished runs stay as they are, and the others resume
    from their last checkpoints.

    \b
    Examples:
      metasched results
      metasched results deeprm --dry-run
      metasched results deeprm --seeds 0
      metasched results my-experiment.yaml --out runs/mine
      metasched results sites --logs FOLDER --policies runs/mine --processors philly=2490
    """
    from cluster_env.core.errors import InputError
    from tune_jobs.experiments.definition import in_order, load_experiment
    from tune_jobs.experiments.running import given_to, make_all, make_results

    options = replace(options, at_once=options.at_once or min(num_local_cpus(), MOST_AT_ONCE))
    experiment, given = options.experiment, given_to(options)
    if given and experiment in (None, ALL):
        raise InputError(f"--{next(iter(given))} is for one experiment, so name it")
    if experiment is None:
        print_list(_experiments())
        minutes = sum(load_experiment(name).minutes or 0 for name in in_order())
        click.echo(f"all makes those of DeepRM's world, in about {minutes} minutes on two cores.")
    elif experiment == ALL:
        make_all(options)
    else:
        make_results(experiment, options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
