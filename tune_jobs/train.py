"""``metasched train``: one training run on Ray."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import (
    CONTEXT,
    SEED,
    cluster_options,
    count,
    first_comment,
    list_option,
    print_list,
)


def _presets() -> list[tuple[str, str]]:
    from rllib_configs.loading import PRESETS, preset_names

    listed = [(name, first_comment(PRESETS / f"{name}.yaml")) for name in preset_names()]
    return sorted(listed, key=lambda preset: not preset[1].startswith("First choice"))


@click.command(name="train", context_settings=CONTEXT)
@click.argument("preset", required=False)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a setting, for instance training.lr=3e-4; can be repeated.",
)
@click.option("--seed", type=SEED, help="Seed of all random numbers of the run.")
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that holds the runs, by default runs.",
)
@click.option(
    "--run",
    "run_dir",
    type=click.Path(path_type=Path),
    help="Folder of this run, new or empty; by default one with a generated name.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Resume a run from its newest checkpoint. RUN is its folder or one of its checkpoints.",
)
@click.option(
    "--continue",
    "goes_on",
    is_flag=True,
    help="Resume the run in the folder --run if it exists, and begin it otherwise. So a job can be "
    "submitted again after its cluster was lost.",
)
@click.option(
    "--runners",
    "num_runners",
    type=count(0),
    help="Processes that sample; 0 samples in this process.",
)
@cluster_options
@click.option(
    "--print-config",
    is_flag=True,
    help="Print the resolved config as YAML, with all defaults and changes, and exit.",
)
@list_option("--presets", "the presets", _presets)
@click.option(
    "--settings",
    is_flag=True,
    help="Explain the settings and exit: those of PRESET with its values, or all settings with "
    "their defaults.",
)
def command(settings: bool, **options: Any) -> None:
    """Train a scheduler. PRESET is the name of a preset or the path of a YAML file.

    The default is deeprm-operation, a policy for a cluster that is never empty. After Ctrl-C or
    SIGTERM the run finishes its iteration and writes a checkpoint. --resume continues from there
    with the same numbers as an undisturbed run.

    \b
    Examples:
      metasched train --run runs/mine
      metasched train deeprm-smoke
      metasched train deeprm --set task.workload.load=1.1 --seed 3
      metasched train deeprm-ppo-large-batch --set seed=3 --print-config > my-experiment.yaml
      metasched train my-experiment.yaml --address 10.0.0.5:6379 --runners 16
      metasched train deeprm --run /shared/runs/a --continue --address auto
      metasched train --resume runs/deeprm-20260101-120000-s0 --set training.iterations=2000
    """
    if settings:
        _print_settings(options["preset"], options["overrides"])
        return
    from tune_jobs.figures import draw_figure
    from tune_jobs.runs.launching import TrainingOptions, launch_training

    launch_training(TrainingOptions(**options), draw_figure)


def _print_settings(preset: str | None, changes: Sequence[str]) -> None:
    from rllib_configs.loading import load_config
    from rllib_configs.settings import list_settings, settings_of

    found = settings_of(load_config(preset, changes)) if preset else list_settings()
    print_list((f"{setting.key}={setting.default}", setting.explanation) for setting in found)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
