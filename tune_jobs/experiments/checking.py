"""Whether the runs of a folder are those that an experiment names."""

from collections.abc import Mapping
from pathlib import Path

from cluster_env.core.errors import InputError
from rllib_configs.loading import load_config
from rllib_configs.registries import prepare
from tune_jobs.comparing.trained_runs import find_runs
from tune_jobs.experiments.commands import Command
from tune_jobs.experiments.recording import RECORD
from tune_jobs.tracking.values import flatten

COMPARED = ("task", "training", "seed")
"""Sections of a config that a result depends on."""


def check_place(source: str, out: Path) -> None:
    """Makes sure that a folder is not the one that holds the results of several experiments.

    Raises:
        InputError: if it holds those of this one in a folder of their own.
    """
    name = Path(source).stem
    if (out / name).is_dir() and not (out / RECORD).exists():
        raise InputError(
            f"{out} holds the results of {name} in a folder of their own; give --out {out / name}"
        )


def check_trained(command: Command) -> None:
    """Makes sure that a run that is there already was begun as a command would begin it.

    Raises:
        InputError: if it was not.
    """
    assert command.run is not None
    file = command.run / "config.yaml"
    if not file.is_file():
        if (command.run / "policy").exists():
            raise InputError(
                f"{command.run} has a policy and no {file.name}, so nobody can say which run it "
                f"is; give another folder with --out, or remove it"
            )
        return
    (seed,) = command.after("--seed")
    given = [*command.after("--set"), f"seed={seed}"]
    wanted = flatten(prepare(load_config(command.words[1], given)).to_dict())
    found = flatten(load_config(str(file)).to_dict())
    for key in sorted(wanted.keys() | found.keys()):
        if key.partition(".")[0] in COMPARED and wanted.get(key) != found.get(key):
            raise InputError(
                f"{command.run} is not the run that the experiment names: {key} is "
                f"{found.get(key)} there and {wanted.get(key)} here; give another folder with "
                f"--out, or remove that run"
            )


def check_runs(command: Command, trained: Mapping[Path, Command]) -> None:
    """Makes sure that a command uses no runs of its folder but those of the experiment.

    Raises:
        InputError: if a glob matches another one, or one that is not trained to its end.
    """
    known = {run.resolve(): training for run, training in trained.items()}
    folders = {run.parent for run in known}
    for word in command.words:
        for part in word.split(","):
            if not any(Path(part).resolve().is_relative_to(folder) for folder in folders):
                continue
            for run in _matches(part):
                if run.resolve() not in known:
                    raise InputError(
                        f"'{command}' would use {run}, which the experiment does not name; move "
                        f"it away, or give another folder with --out"
                    )
                if not known[run.resolve()].is_done():
                    raise InputError(f"'{command}' would use {run}, which is not trained yet")


def _matches(name: str) -> list[Path]:
    """The run directories that a path or a glob names; none if it names something else."""
    try:
        found = find_runs([name])
    except InputError:
        return []
    return [path for path in found if (path / "config.yaml").is_file()]
