"""``metasched train``: a training run, begun or resumed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from tune_jobs.commands import command_line
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.shared import texts_of
from tune_jobs.commands.training import Train
from tune_jobs.terminal.options import first_comment, print_list


def _presets() -> list[tuple[str, str]]:
    from rllib_configs.config.loading import PRESETS, preset_names

    listed = [(name, first_comment(PRESETS / f"{name}.yaml")) for name in preset_names()]
    return sorted(listed, key=lambda preset: not preset[1].startswith("First choice"))


@command_line.command("train", Train)
def command(
    options: Train,
    *,
    resume: Annotated[
        Path | None,
        Flag(
            "Resume a run from its newest checkpoint. RUN is its folder or one of its checkpoints.",
            metavar="RUN",
        ),
    ] = None,
    goes_on: Annotated[
        bool,
        Flag(
            "Resume the run in the folder --run if it exists, and begin it otherwise. So a job can "
            "be submitted again after its cluster was lost.",
            "continue",
        ),
    ] = False,
    show: Annotated[
        Literal["presets", "settings", "config"] | None,
        Flag(
            "Print and exit. presets: what there is for PRESET. settings: an explanation of those "
            "of PRESET with its values, or of all with their defaults. config: the resolved config "
            "as YAML, with all defaults and changes."
        ),
    ] = None,
) -> None:
    """Train a scheduler. PRESET is the name of a preset or the path of a YAML file.

    The default is deeprm-operation, a policy for a cluster that is never empty. After Ctrl-C or
    SIGTERM the run finishes its iteration and writes a checkpoint. --resume continues from there
    with the same numbers as an undisturbed run.

    \b
    Examples:
      metasched train deeprm-smoke
      metasched train deeprm --set task.workload.load=1.1 --seed 3
      metasched train deeprm-ppo-large-batch --set seed=3 --show config > my-experiment.yaml
      metasched train my-experiment.yaml --address 10.0.0.5:6379 --runners 16
      metasched train deeprm --run /shared/runs/a --continue --address auto
      metasched train --resume runs/deeprm-20260101-120000-s0 --set training.iterations=2000
    """
    if show == "presets":
        print_list(_presets())
        return
    if show == "settings":
        _print_settings(options.config, texts_of(options.changes))
        return
    from tune_jobs.figures import draw_figure
    from tune_jobs.runs.launching import launch_training

    launch_training(
        options, draw_figure, resume=resume, goes_on=goes_on, print_config=show == "config"
    )


def _print_settings(preset: object, changes: Sequence[str]) -> None:
    from rllib_configs.config.loading import load_config
    from rllib_configs.config.settings import list_settings, settings_of

    found = settings_of(load_config(str(preset), changes)) if preset else list_settings()
    print_list((f"{setting.key}={setting.default}", setting.explanation) for setting in found)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
