"""Which trials a sweep has: their settings, their seeds, and their whole configs."""

import copy
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Purpose, generator
from rllib_configs.config.changes import change
from rllib_configs.config.loading import load_config, make_config
from rllib_configs.config.schema import ExperimentConfig, prepare
from tune_jobs.sweeps.definition import PRESET, Sweep

Presets = Mapping[str, Mapping[str, Any]]

# Set by the sweep itself, or nothing that results depend on.
_RESERVED = ("seed", "runs", "name")
_NOT_SEARCHED = (*_RESERVED, "resources", "tracking", "checkpoint")


class _Stream(IntEnum):
    """Streams of random numbers of a sweep; the values are part of every seed."""

    POINTS = 0
    SEEDS = 1
    SEARCHER = 3


@dataclass(frozen=True)
class Point:
    """One trial, before it runs."""

    index: int  # from 0; what its seed is derived from
    settings: dict[str, Any]  # what the space says for it, by key

    def describe(self, keys: Sequence[str] | None = None) -> str:
        """Its settings, or those of some keys, short: ``lr=0.001 objective=makespan``."""
        return " ".join(
            f"{key.rpartition('.')[2]}={short_value(self.settings[key])}"
            for key in (self.settings if keys is None else keys)
        )


def short_value(value: Any) -> str:
    """A setting's value as tables show it."""
    if isinstance(value, bool) or not isinstance(value, float | dict | list | tuple):
        return str(value)
    return f"{value:.3g}" if isinstance(value, float) else json.dumps(value)


def list_points(sweep: Sweep) -> list[Point]:
    """All trials of a sweep whose settings do not depend on results.

    Every draw has a generator of its own, so that a trial depends on sweep, seed and index alone,
    and more `trials` add to those that there were.
    """
    grids = {key: dim.grid for key, dim in sweep.space.items() if dim.grid is not None}
    combinations = list(itertools.product(*grids.values()))
    points = []
    for index in range(sweep.trials * len(combinations)):
        chosen = dict(zip(grids, combinations[index % len(combinations)], strict=True))
        rng = generator(sweep.seed, Purpose.SWEEP, _Stream.POINTS, index)
        settings = {
            key: chosen[key] if key in chosen else dimension.draw(rng)
            for key, dimension in sweep.space.items()
        }
        points.append(Point(index, settings))
    return points


def num_trials(sweep: Sweep) -> int:
    """How many trials there are, or, with optuna, will be."""
    grids = [len(dim.grid) for dim in sweep.space.values() if dim.grid is not None]
    return sweep.trials * int(np.prod(grids, dtype=int))


def trial_seed(sweep_seed: int, index: int) -> int:
    """Seed of a trial, of 32 bits, from a stream of its own."""
    rng = generator(sweep_seed, Purpose.SWEEP, _Stream.SEEDS, index)
    return int(rng.integers(1 << 32))


def searcher_seed(sweep_seed: int, num_begun: int) -> int:
    """Seed of what a searcher draws once so many trials have begun."""
    rng = generator(sweep_seed, Purpose.SWEEP, _Stream.SEARCHER, num_begun)
    return int(rng.integers(1, 1 << 32))


def read_presets(sweep: Sweep) -> Presets:
    """What trials begin with, by the name or the path of the preset, as plain data.

    Raises:
        InputError: if there is no such preset or file, or it cannot be used.
    """
    searched = sweep.space.get(PRESET)
    sources = [sweep.preset] if searched is None else [str(each) for each in searched.examples()]
    return {source: load_config(source).to_dict() for source in sources}


def trial_config(
    sweep: Sweep, point: Point, runs: Path = Path("runs"), presets: Presets | None = None
) -> ExperimentConfig:
    """The whole config of a trial in a folder of runs.

    The presets of `read_presets` are given where files cannot be seen, or to save time.

    Raises:
        InputError: if a key is unknown, or a value impossible.
    """
    chosen = dict(point.settings)
    source = str(chosen.pop(PRESET, sweep.preset))
    data = copy.deepcopy(dict((presets or read_presets(sweep))[source]))
    data["resources"] = {**data["resources"], "num_runners": 0}
    change(data, {**sweep.settings, **chosen})
    data |= {"name": sweep.name, "runs": str(runs), "seed": trial_seed(sweep.seed, point.index)}
    return prepare(make_config(data))


def check_sweep(sweep: Sweep) -> list[ExperimentConfig]:
    """Finds out whether all trials can be trained, as far as that shows before they are.

    Returns:
        The configs of all trials; with optuna, of examples.

    Raises:
        InputError: if a key is unknown, a value impossible, or what is searched does not go with
            how.
    """
    for key in sweep.settings:
        if key.partition(".")[0] in _RESERVED:
            raise InputError(f"{key} is set by the sweep itself, so leave it out of settings")
    for key in sweep.space:
        if key.partition(".")[0] in _NOT_SEARCHED:
            raise InputError(f"{key} cannot be searched by a sweep")
        sweep.strategy.check_key(key)
    presets = read_presets(sweep)
    for point in _examples(sweep):  # each value and each end of a range
        _checked(sweep, point, presets)
    points = list_points(sweep) if sweep.strategy.draws_beforehand else _examples(sweep)
    configs = [_checked(sweep, point, presets) for point in points]
    _check_budgets(sweep, configs)
    return configs


def _examples(sweep: Sweep) -> list[Point]:
    first = {key: dimension.examples()[0] for key, dimension in sweep.space.items()}
    settings = [
        {**first, key: value}
        for key, dimension in sweep.space.items()
        for value in dimension.examples()
    ]
    return [Point(index, each) for index, each in enumerate(settings)]


def _checked(sweep: Sweep, point: Point, presets: Presets) -> ExperimentConfig:
    try:
        return trial_config(sweep, point, presets=presets)
    except InputError as error:
        raise InputError(f"a trial with {point.describe()} cannot be trained: {error}") from None


def _check_budgets(sweep: Sweep, configs: list[ExperimentConfig]) -> None:
    decision = sweep.strategy.first_decision(sweep)
    if decision is None:
        return
    name, needed = decision
    budgets = {config.training.iterations for config in configs}
    if len(budgets) > 1:
        raise InputError(
            f"{sweep.search} compares trials after equally many iterations, so "
            f"training.iterations cannot differ between them"
        )
    iterations = budgets.pop()
    if needed >= iterations:
        raise InputError(
            f"{name} is {needed}, but trials end after {iterations} iterations; give less"
        )
    every = configs[0].evaluation.every
    if sweep.metric.startswith("eval/") and (not every or needed % every):
        raise InputError(
            f"{sweep.search} needs {sweep.metric} after {needed} iterations ({name}), but "
            f"evaluation.every is {every}; make {name} a multiple of it"
        )


def as_row(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as cells of a table; tables and lists become JSON."""
    return {
        key: json.dumps(value) if isinstance(value, dict | list | tuple) else value
        for key, value in settings.items()
    }


def cpus_of(config: ExperimentConfig) -> int:
    """CPUs that a trial takes: itself and its runners."""
    return 1 + config.resources.num_runners


def check_cpus(config: ExperimentConfig, total: float) -> None:
    """Makes sure that a trial can start on a machine or a cluster of so many CPUs.

    Raises:
        InputError: if there are too few.
    """
    needed = cpus_of(config)
    if needed > total:
        what = f"{needed} CPUs (1 + {needed - 1} runners)" if needed > 1 else "1 CPU"
        raise InputError(
            f"a trial needs {what}, but there are {total:g}; set resources.num_runners lower, or "
            f"use a larger cluster with --address"
        )
