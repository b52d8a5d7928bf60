"""From an experiment to the commands of metasched that carry it out."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

from cluster_env.core.errors import InputError
from tune_jobs.experiments.definition import Experiment, RunsSection, Scalar, load_experiment
from tune_jobs.runs.directory import RunDirectory


@dataclass(frozen=True)
class Command:
    """One command of metasched.

    Attributes:
        words: of the command line, without ``metasched``.
        run: folder of the run that it trains; None if it trains none.
        num_iterations: of that run.
    """

    words: tuple[str, ...]
    run: Path | None = None
    num_iterations: int = 0

    def __str__(self) -> str:
        """The line as a shell takes it."""
        return shlex.join(("metasched", *self.words))

    def after(self, flag: str) -> list[str]:
        """The words that follow an option, in their order."""
        return [text for word, text in pairwise(self.words) if word == flag]

    def is_done(self) -> bool:
        """Whether it trains a run that has its last checkpoint and its policy."""
        return self.run is not None and RunDirectory(self.run).has_done(self.num_iterations)


def list_commands(
    experiment: Experiment, out: Path, seeds: Sequence[int] | None = None
) -> list[Command]:
    """All commands of an experiment, in the order in which they are to run.

    Args:
        experiment: what to do.
        out: folder of its runs and figures.
        seeds: training seeds of all runs, instead of the experiment's.

    Raises:
        InputError: if a text names a value that there is none of, two runs share a folder, or an
            experiment that is used is not there.
    """
    used = {name: out.parent / name for name in experiment.uses}
    commands: list[Command] = []
    for name, folder in used.items():
        commands += _all_trainings(load_experiment(name), folder, seeds)
    commands += _all_trainings(experiment, out, seeds)
    folders = [command.run for command in commands]
    twice = next((folder for folder in folders if folders.count(folder) > 1), None)
    if twice is not None:
        raise InputError(
            f"two runs would share the folder {twice}; put {{seed}} and all that varies in the name"
        )
    for step in experiment.steps:
        words = shlex.split(step.command)
        for values in _combinations(step.vary):
            given = {**used, **values, "out": out}
            commands.append(Command(tuple(_fill(word, given) for word in words)))
    return commands


def _all_trainings(
    experiment: Experiment, out: Path, seeds: Sequence[int] | None
) -> Iterator[Command]:
    """Those of an experiment, seed by seed."""
    all_seeds = {seed for runs in experiment.runs for seed in _seeds(runs, experiment, seeds)}
    for seed in sorted(all_seeds):
        for runs in experiment.runs:
            if seed in _seeds(runs, experiment, seeds):
                yield from _trainings(runs, out, seed)


def _seeds(
    runs: RunsSection, experiment: Experiment, instead: Sequence[int] | None
) -> Sequence[int]:
    return instead or runs.seeds or experiment.seeds


def _trainings(runs: RunsSection, out: Path, seed: int) -> Iterator[Command]:
    for values in _combinations(runs.vary):
        given = {**values, "seed": seed, "out": out}
        folder = out / _fill(runs.name, given)
        settings = {
            **{key: _fill(_as_text(value), given) for key, value in runs.settings.items()},
            "training.iterations": str(runs.iterations),
        }
        sets = (word for key, text in settings.items() for word in ("--set", f"{key}={text}"))
        # --continue begins a run or goes on with it, so that the same line can be given again.
        words = ("train", runs.preset, *sets, "--seed", str(seed), "--run", str(folder))
        yield Command((*words, "--continue"), folder, runs.iterations)


def _combinations(vary: Mapping[str, Sequence[Scalar]]) -> Iterator[dict[str, Scalar]]:
    for values in product(*vary.values()):
        yield dict(zip(vary, values, strict=True))


def _as_text(value: Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _fill(text: str, values: Mapping[str, object]) -> str:
    try:
        return text.format_map(values)
    except (KeyError, IndexError, ValueError):
        raise InputError(
            f"'{text}' uses a name in braces that is none of {', '.join(values)}; braces that are "
            "meant as such are doubled"
        ) from None
