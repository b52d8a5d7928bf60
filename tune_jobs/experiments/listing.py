"""From an experiment to the calls that carry it out."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import unknown
from tune_jobs.commands.values import Scalar
from tune_jobs.experiments.calls import Call, Options
from tune_jobs.experiments.definition import (
    Experiment,
    experiment_names,
    load_experiment,
)
from tune_jobs.experiments.reach import is_inside

MOST_CALLS, MOST_CHARACTERS = 10_000, 10_000
"""Calls of an experiment, and characters of a text of one."""

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def list_calls(
    experiment: Experiment,
    out: Path,
    seeds: Sequence[int] | None = None,
    given: Mapping[str, str] = MappingProxyType({}),
) -> list[Call]:
    """All calls of an experiment in a folder, in the order in which they are to be made.

    Args:
        experiment: what is to be made.
        out: its folder.
        seeds: training seeds of all runs, instead of the experiment's.
        given: options that its runs and steps use, see `Experiment.takes`.

    Raises:
        InputError: if a text names a value that there is none of, two runs share a folder, an
            experiment that is used is not there, or an option is missing or not used.
    """
    for name in experiment.uses:
        if name not in experiment_names():
            raise unknown("experiment to use", name, experiment_names())
    taken = _taken(experiment, given)
    used = {name: out.parent / name for name in experiment.uses}
    calls: list[Call] = []
    for name, folder in used.items():
        calls += _trainings(load_experiment(name), folder, seeds)
    calls += _trainings(experiment, out, seeds, taken)
    folders = [call.run for call in calls]
    twice = next((folder for folder in folders if folders.count(folder) > 1), None)
    if twice is not None:
        raise InputError(
            f"two runs would share the folder {twice}; put {{seed}} and all that varies in the name"
        )
    for step in experiment.steps:
        for values in _combinations(step.vary):
            if len(calls) >= MOST_CALLS:
                raise _too_many()
            names = {**used, **taken, **values, "out": out}
            filled = {name: _filled(value, names) for name, value in step.options.items()}
            options = {name: value for name, value in filled.items() if value != ""}
            calls.append(Call(step.call, options))
    return calls


def _taken(experiment: Experiment, given: Mapping[str, str]) -> dict[str, str]:
    """The options of ``metasched results`` that runs and steps use."""
    if unused := [f"--{name}" for name in given if name not in experiment.takes]:
        raise InputError(f"these results do not use {', '.join(unused)}, so leave it out")
    taken = {**experiment.takes, **given}
    if missing := [f"--{name}" for name, text in taken.items() if text is None]:
        raise InputError(f"these results need {', '.join(missing)}")
    return {name: text for name, text in taken.items() if text is not None}


def _trainings(
    experiment: Experiment,
    out: Path,
    seeds: Sequence[int] | None,
    taken: Mapping[str, str] = MappingProxyType({}),
) -> list[Call]:
    """Those of an experiment, seed by seed."""
    calls: list[tuple[int, Call]] = []
    for runs in experiment.runs:
        of_runs = seeds or runs.seeds or experiment.seeds
        # Not by `product`, which would hold all combinations at once.
        for seed, values in ((seed, each) for seed in of_runs for each in _combinations(runs.vary)):
            names = {**taken, **values, "seed": seed, "out": out}
            folder = out / _fill(runs.name, names)
            if folder == out or not is_inside(folder, out):
                raise InputError(f"the run {folder} would lie outside of {out}")
            if len(calls) >= MOST_CALLS:
                raise _too_many()
            settings = [
                f"{key}={_fill(value if isinstance(value, str) else json.dumps(value), names)}"
                for key, value in runs.settings.items()
            ]
            options: Options = {
                "config": runs.preset,
                "set": [*settings, f"training.iterations={runs.iterations}"],
                "seed": seed,
                "run": str(folder),
                "continue": True,  # begins a run or resumes it, so that the call can be repeated
            }
            calls.append((seed, Call("train", options, folder, runs.iterations)))
    return [call for _, call in sorted(calls, key=itemgetter(0))]


def _combinations(vary: Mapping[str, Sequence[Scalar]]) -> Iterator[dict[str, Scalar]]:
    for values in product(*vary.values()):
        yield dict(zip(vary, values, strict=True))


def _filled(value: Scalar | Sequence[Scalar], names: Mapping[str, object]) -> Any:
    """The value of an option, with names filled in wherever it is text."""
    if isinstance(value, str):
        return _fill(value, names)
    return value if isinstance(value, Scalar) else [_filled(one, names) for one in value]


def _fill(text: str, names: Mapping[str, object]) -> str:
    """A text with the values of names in braces; nothing else of a value can be had."""

    def piece(brace: re.Match[str]) -> str:
        if brace[0] in ("{{", "}}"):
            return brace[0][0]
        if brace[1] not in names:
            raise InputError(
                f"'{shortened(text)}' uses a name in braces that is none of {', '.join(names)}; "
                f"write literal braces twice"
            )
        return str(names[brace[1]])

    pieces, end, length = list[str](), 0, 0
    for brace in _BRACES.finditer(text):
        pieces += [text[end : brace.start()], piece(brace)]
        end, length = brace.end(), length + len(pieces[-2]) + len(pieces[-1])
        if length > MOST_CHARACTERS:
            raise InputError(
                f"'{shortened(text)}' becomes longer than {MOST_CHARACTERS:,} characters"
            )
    return "".join([*pieces, text[end:]])


def _too_many() -> InputError:
    return InputError(f"an experiment makes at most {MOST_CALLS:,} calls; vary fewer values")
