"""Rows of adaptation as arrays by method, and the means and intervals that figures show of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.evaluation import Estimate
from cluster_env.evaluation.intervals import seeds_interval
from tune_jobs.adapting.rows import read_rows
from tune_jobs.figures.kit.curves import Style
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import with_numbers

Ratios = NDArray[np.float64]
Statistic = Callable[[Ratios, Ratios], Ratios]
"""From ratios after some steps and after none, ``(..., adaptations)``, to a number for each."""

WIN_RATIO = 1.005
"""Ratio of cost to baseline up to which a task counts as won; the baseline is an estimate."""

WORSE = 1.05
"""Times its cost without adaptation from which adaptation has made a task worse."""

SIDE_METRICS = ("utilization", "wait", "longest_wait", "slowdown_small", "slowdown_large")
"""What a low cost may be bought with, as far as rows have it."""

JOINT = "joint"
CONDITIONED = "conditioned"

_COLORS = {
    "FOMAML": "#d55e00",
    "MAML": "#0072b2",
    "ProMP": "#000000",
    "joint": "#009e73",
    "conditioned": "#cc79a7",
    "rewards": "#8c8c00",
    "one task": "#56b4e9",
    "scratch": "#e69f00",
    "DeepRM": "#7f3b08",
}
_FAMILIES = ("objectives", "priorities", "workloads", "mixed")
_STYLES: tuple[Style, ...] = ("-", (0, (5, 2)), (0, (2, 2)), (0, (1, 1)))
_PLACE = ["step", "meta_seed", "task", "seed"]  # axes of `Method.ratios`


@dataclass(frozen=True, eq=False)
class Method:
    """Runs that differ in their seed alone, on the tasks of one family."""

    family: str
    label: str
    steps: tuple[int, ...]  # after which it was evaluated, ascending
    episodes: tuple[int, ...]  # that those took
    ratios: Ratios  # cost over baseline, ``(steps, meta-seeds, tasks, adaptations)``
    objectives: tuple[str, ...]  # of each task
    side_metrics: Mapping[str, Ratios] = field(default_factory=dict)  # as ``ratios``, by name

    @property
    def kind(self) -> str:
        """The beginning of its label, by which it has its color."""
        return kind_of(self.label)

    @property
    def num_seeds(self) -> int:
        """Number of meta-training runs."""
        return int(self.ratios.shape[1])

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return int(self.ratios.shape[2])

    def table(self, step: int, statistic: Statistic) -> Ratios:
        """A statistic by run and task, mean over adaptations, float64 ``(meta-seeds, tasks)``."""
        at = self.ratios[self.steps.index(step)]
        before = self.ratios[self.steps.index(0)] if 0 in self.steps else np.full_like(at, np.nan)
        table: Ratios = statistic(at, before).mean(axis=-1)
        return table

    def means_beside(self, step: int, num_tasks: int | None = None) -> dict[str, float]:
        """Means of the side metrics over runs, tasks, or the first of them, and adaptations."""
        place = self.steps.index(step)
        return {
            name: float(values[place, :, :num_tasks].mean())
            for name, values in self.side_metrics.items()
        }

    def on(self, objective: str) -> "Method":
        """The method on the tasks of one objective."""
        kept = [k for k, name in enumerate(self.objectives) if name == objective]
        return replace(
            self,
            ratios=self.ratios[:, :, kept],
            objectives=(objective,) * len(kept),
            side_metrics={name: each[:, :, kept] for name, each in self.side_metrics.items()},
        )


def ratio(at: Ratios, before: Ratios) -> Ratios:
    """The ratio of cost to baseline."""
    return at


def log_ratio(at: Ratios, before: Ratios) -> Ratios:
    """ln of the ratio of cost to baseline, of which one task far above cannot decide the mean."""
    return np.log(at)


def won(at: Ratios, before: Ratios) -> Ratios:
    """1 where the ratio is at most `WIN_RATIO`, else 0."""
    return (at <= WIN_RATIO).astype(np.float64)


def made_worse(at: Ratios, before: Ratios) -> Ratios:
    """1 where the cost is more than `WORSE` times that without adaptation, else 0."""
    return (at > WORSE * before).astype(np.float64)


def geometric(table: Ratios, other: Ratios | None = None) -> Estimate:
    """Geometric mean from a table of `log_ratio`, or the ratio of two on the same tasks."""
    logs = seeds_interval(table, other)
    value, low, high = (math.exp(end) for end in (logs.value, logs.low, logs.high))
    return replace(logs, value=value, low=low, high=high)


def load_methods(request: FigureRequest) -> tuple[list[Method], pd.DataFrame]:
    """The methods of the rows that a request names, and the rows of heuristics, all text.

    Methods of one name are told apart by the tasks and the config that they were trained with.

    Raises:
        InputError: if there are no rows, or some of a method are missing or there twice.
    """
    if not request.rows:
        raise InputError("this figure needs rows: give the folder of metasched study with --rows")
    cells, heuristics = read_rows(request.rows)
    rows = pd.DataFrame(cells, dtype=object).fillna("")
    methods = []
    for (family, method), alike in rows.groupby(["family", "method"], sort=False):
        several = alike["trained_on"].nunique() > 1
        for trained_on, of_one in alike.groupby("trained_on", sort=False):
            names = of_one["name"].unique()
            for name in names:
                notes = [f"on {trained_on}"] * several + [name] * (len(names) > 1)
                label = f"{method} ({', '.join(notes)})" if notes else method
                methods.append(_method(family, label, of_one[of_one["name"] == name]))
    families = {name: place for place, name in enumerate(_FAMILIES)}
    kinds = [*_COLORS, ""]
    methods.sort(
        key=lambda method: (
            families.get(method.family, len(families)),
            method.family,
            kinds.index(method.kind),
            method.label,
        )
    )
    return methods, pd.DataFrame(heuristics, dtype=object).fillna("")


def _method(family: str, label: str, rows: pd.DataFrame) -> Method:
    """The rows of a method in arrays, by `_PLACE`."""
    beside = [name for name in SIDE_METRICS if name in rows and rows[name].iloc[0]]
    rows = with_numbers(rows, [*_PLACE, "episodes", "ratio", *beside])
    rows[[*_PLACE, "episodes"]] = rows[[*_PLACE, "episodes"]].astype(int)
    twice = rows[rows.duplicated(_PLACE)]
    if len(twice):
        raise InputError(
            f"there are two runs of the method '{label}' with the seed "
            f"{twice['meta_seed'].iloc[0]}; measure one of them, or give them different names"
        )
    places = pd.MultiIndex.from_product([sorted(rows[name].unique()) for name in _PLACE])
    whole = rows.set_index(_PLACE).reindex(places)
    if whole["ratio"].isna().any():
        raise InputError(
            f"the runs of the method '{label}' were not measured on the same tasks, seeds and "
            f"steps; measure all of them with the same metasched study"
        )
    episodes = rows.groupby("step")["episodes"].last()
    return Method(
        family,
        label,
        tuple(episodes.index.tolist()),
        tuple(episodes.tolist()),
        whole["ratio"].to_numpy().reshape(places.levshape),
        tuple(rows.groupby("task")["objective"].last()),
        {name: whole[name].to_numpy().reshape(places.levshape) for name in beside},
    )


def color_and_style(method: str, others: Sequence[str]) -> tuple[str, Style]:
    """Color of a method by its kind, and a style of line that tells methods of a kind apart."""
    kind = kind_of(method)
    alike = [other for other in dict.fromkeys(others) if kind_of(other) == kind]
    return _COLORS.get(kind, "#6b6b6b"), _STYLES[alike.index(method) % len(_STYLES)]


def kind_of(method: str) -> str:
    """The kind of a method, from its label; empty for one that nobody knows."""
    return next((kind for kind in _COLORS if method.split(" K=")[0].startswith(kind)), "")


def untrained(method: str) -> bool:
    """Whether a method begins without training, far above all others."""
    return kind_of(method) in ("scratch", "DeepRM")
