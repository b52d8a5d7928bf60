"""How tables, figures and messages name the jobs that numbers rest on."""

from collections.abc import Mapping, Sequence
from math import isnan

from cluster_env.core.seeding import Split
from cluster_env.task import Task
from cluster_env.worlds import WORLDS, WorldSpec, get_spec


def jobs_of(task: Task, split: Split = Split.HELD_OUT) -> str:
    """Names the jobs of a task: ``load 70%``; measured on a split, ``trace jobs.csv, load 62%``."""
    axis, words = task.spec.presentation.axis, task.spec.presentation.words(task)
    measured = float("nan") if task.has_axis else task.position_on(split)
    return words if axis is None or isnan(measured) else f"{words}, {axis.show(measured)}"


def spec_of_row(row: Mapping[str, object]) -> WorldSpec:
    """The kind of world that a row is about; the first in tables from before there were several."""
    return get_spec(str(row.get("world") or WORLDS.names()[0]))


def value_of(row: Mapping[str, object], ending: str = "") -> float:
    """The value of the axis in a row: what was asked for, or with ``_used`` what was measured at.

    NaN in a world without an axis.
    """
    axis = spec_of_row(row).presentation.axis
    return float("nan") if axis is None else number_in(row.get(f"{axis.name}{ending}"))


def jobs_in(row: Mapping[str, object]) -> str:
    """Names the jobs that a row rests on, as `jobs_of`."""
    axis = spec_of_row(row).presentation.axis
    shown = "" if axis is None else axis.show(value_of(row))
    return str(row.get("jobs") or shown)


def on_jobs(row: Mapping[str, object]) -> str:
    """Says which jobs a row rests on: ``at load 70%``, ``on trace jobs.csv, load 62%``."""
    axis, jobs = spec_of_row(row).presentation.axis, jobs_in(row)
    at_value = axis is not None and jobs.startswith(f"{axis.name} ")
    return f"{'at' if at_value else 'on'} {jobs}"


def described(row: Mapping[str, object]) -> str:
    """What else a row rests on: ``arrival window 50 steps, rules of the paper``."""
    try:
        return spec_of_row(row).presentation.describe(row)
    except KeyError:  # tables of other versions may lack a column
        return ""


def short(words: str) -> str:
    """What stands behind the first word of the first part: ``70%`` of ``load 70%, windows 9``."""
    part = words.partition(",")[0]
    return part.partition(" ")[2] or part


def trained_on(row: Mapping[str, object]) -> str:
    """Says where a policy was trained: ``trained at 70%``, ``trained on trace jobs.csv``."""
    axis, value = spec_of_row(row).presentation.axis, number_in(row["trained_at"])
    if axis is None or isnan(value):
        return f"trained on {row['trained_on']}"
    return f"trained at {short(axis.show(value))}"


MOST_NAMES = 8
"""Rules that a sentence names one by one."""


def best_of(names: Sequence[str]) -> str:
    """Says against which rules the best one stands: ``the best of sjf, tetris and hold``."""
    if len(names) > MOST_NAMES:
        return f"the best of all {len(names)} heuristics of the table"
    *some, last = names
    return f"the best of {', '.join(some)} and {last}" if some else "the only rule"


def compared(value: float, other: float) -> str:
    """``12.5% less than``."""
    if value == other:
        return "as much as"
    share = f"{abs(value / other - 1):.1%} " if other else ""
    return f"{share}{'more' if value > other else 'less'} than"


def number_in(value: object) -> float:
    """The number in a cell, NaN if it is empty or not there."""
    return float("nan") if value in ("", None) else float(str(value))
