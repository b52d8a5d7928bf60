"""Measured durations of tasks, by executors of the job and by what the executor did before.

The data of Decima (Mao et al., Learning Scheduling Algorithms for Data Processing Clusters, SIGCOMM
2019): graphs of TPC-H's queries on Spark, with tasks of a *fresh* executor, of the *first* wave on
an executor that ran another stage before, and of the *rest*. One JSON file, perhaps compressed by
gzip, holds an object ``SIZE/QUERY: {stages, edges, durations_ms}``; durations_ms has for each stage
the lists ``fresh_durations``, ``first_wave`` and ``rest_wave`` by number of executors.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.graphs import MOST_STAGES, Stages
from cluster_env.core.json_text import read_json

LEVELS = np.array([2, 5, 10, 20, 40, 50, 60, 80, 100])
"""Numbers of executors at which durations were measured."""

FILE = "tpch-spark-dags.json.gz"
"""Name of the file in a folder."""

FRESH, FIRST, REST = range(3)
_LISTS = ("fresh_durations", "first_wave", "rest_wave")


class Durations(NamedTuple):
    """Durations that were measured, as compiled code reads them."""

    values: NDArray[np.int64]  # all of them, one list after the other
    first: NDArray[np.int64]  # (num_stages, 3, len(LEVELS)), where each list begins
    sizes: NDArray[np.int64]  # (num_stages, 3, len(LEVELS)), how many it has


class Library(NamedTuple):
    """Graphs from a file."""

    names: tuple[str, ...]  # SIZE/QUERY, the smallest first
    row: NDArray[np.int64]  # (num_graphs,), row of the first stage of each in `durations`
    stages: Stages  # (num_graphs, width)
    durations: Durations


NO_LIBRARY = Library(
    names=(),
    row=np.zeros(0, np.int64),
    stages=Stages(*np.zeros((3, 0, 1), np.int64)),
    durations=Durations(*(np.zeros(shape, np.int64) for shape in (1, (1, 3, 9), (1, 3, 9)))),
)
"""For jobs that say their durations themselves."""


@lru_cache(maxsize=4)
def read_library(path: str) -> Library:
    """Reads graphs with measured durations, of a file or of `FILE` in a folder; see above.

    Raises:
        InputError: if there is no such file, or it holds something else.
    """
    file = Path(path)
    if file.is_dir():
        file /= FILE
    with reading(file, "file of task graphs with measured durations") as graphs:
        return _library(graphs)


@contextmanager
def reading(file: Path, what: str) -> Iterator[Any]:
    """What a JSON file holds.

    Raises:
        InputError: if it cannot be read, or what is done with it shows that it is something else.
    """
    try:
        yield read_json(file)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(f"{file} is no {what}: {shortened(repr(error))}") from None


def _library(graphs: Mapping[str, Any]) -> Library:
    names = sorted(graphs, key=_size_and_query)
    width = max(graphs[name]["stages"] for name in names)
    if width > MOST_STAGES:
        raise ValueError(f"{width} stages")
    tasks, parents = np.zeros((2, len(names), width), np.int64)
    time, row = np.zeros((len(names), width)), np.zeros(len(names), np.int64)
    values: list[int] = []
    # Of each stage, where its lists begin and how long they are.
    places: list[NDArray[np.int64]] = []
    for graph, name in enumerate(names):
        row[graph] = len(places)
        for parent, child in graphs[name]["edges"]:
            if not 0 <= parent < child < graphs[name]["stages"]:
                raise ValueError(f"edge {parent} to {child} of {name}")
            parents[graph, child] |= 1 << parent
        for stage in range(graphs[name]["stages"]):
            fresh, first, rest = _waves(graphs[name]["durations_ms"][str(stage)])
            some = next(iter(first))
            tasks[graph, stage] = len(first[some]) + len(rest[some])
            first = _without_fresh(first, fresh)
            measured = [
                one for wave in (fresh, first, rest) for each in wave.values() for one in each
            ]
            if min(measured) < 1:
                raise ValueError(f"duration {min(measured)} of {name}")
            time[graph, stage] = np.mean(measured)
            places.append(np.zeros((2, 3, len(LEVELS)), np.int64))
            for k, level in enumerate(LEVELS.tolist()):
                # Above the largest number that was measured, durations are those of that number.
                known = level if level in first else max(first)
                for wave, each in enumerate((fresh, first, rest)):
                    places[-1][:, wave, k] = len(values), len(each.get(known, ()))
                    values.extend(each.get(known, ()))
                # Where no task of the first wave or of the rest was measured, another stands in.
                for wave in (FIRST, REST):
                    if places[-1][1, wave, k] == 0:
                        places[-1][:, wave, k] = places[-1][:, max(wave - 1, 0), k]
    durations = Durations(np.array(values, np.int64), *np.stack(places, axis=1))
    if (durations.sizes[:, FIRST] == 0).any():
        raise ValueError("a stage without durations of first tasks")
    return Library(tuple(names), row, Stages(tasks, time, parents), durations)


def _size_and_query(name: str) -> tuple[int, int]:
    size, query = name.split("/")
    return int(size.removesuffix("g")), int(query)


def _waves(stage: Mapping[str, Any]) -> list[dict[int, list[int]]]:
    return [{int(level): list(one) for level, one in stage[name].items()} for name in _LISTS]


def _without_fresh(
    first: Mapping[int, list[int]], fresh: Mapping[int, list[int]]
) -> dict[int, list[int]]:
    """First waves without the tasks of fresh executors, which stand among them.

    Where nothing is left, the list of the next smaller number of executors stands in.
    """
    cleaned: dict[int, list[int]] = {}
    last: list[int] = []
    for level in sorted(first):
        left = list(first[level])
        for value in fresh[level]:
            if value in left:
                left.remove(value)
        last = cleaned[level] = left or last
    return cleaned


@njit_inlined
def draw(seed: int, job: int, stage: int, number: int) -> float:
    """A uniform number in [0, 1) that depends on its arguments alone.

    So that a task lasts as long whatever was decided before it, and whoever draws. The hash is the
    one that the golden times of spark-sched-sim were made with.
    """
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    x += np.uint64(job) * np.uint64(0xBF58476D1CE4E5B9)
    x += np.uint64(stage) * np.uint64(0x94D049BB133111EB)
    x += np.uint64(number) * np.uint64(0xD6E8FEB86659FD93)
    # The mixing rounds of SplitMix64.
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return float(x >> np.uint64(11)) * (1.0 / (1 << 53))


@njit_inlined
def level_of(executors: int, level_draw: float) -> int:
    """Index in `LEVELS` for a number of executors, at least 1.

    Of the two numbers beside it a uniform draw decides: the nearer is the likelier. Five executors
    stand for fewer, too, as in spark-sched-sim.
    """
    if executors <= LEVELS[1]:
        return 1
    level = 2
    while level < LEVELS.size - 1 and LEVELS[level] < executors:
        level += 1
    below, above = LEVELS[level - 1], LEVELS[level]
    if executors < above and 1 + int(level_draw * (above - below)) <= executors - below:
        return level - 1
    return level


@njit_inlined
def measured_duration(
    durations: Durations, row: int, level: int, wave: int, warmup: int, value_draw: float
) -> int:
    """The duration of a task that a uniform draw picks, of a stage by its row.

    The wave is `FRESH`, `FIRST` or `REST`. Where no task of a fresh executor was measured, it is a
    first one, and takes the warm-up beside.
    """
    extra = 0
    if wave == FRESH and durations.sizes[row, FRESH, level] == 0:
        wave, extra = FIRST, warmup
    index = int(value_draw * durations.sizes[row, wave, level])
    return durations.values[durations.first[row, wave, level] + index] + extra
