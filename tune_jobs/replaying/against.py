"""Policies that played a log, against one of them: the same jobs in pairs, week by week."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cluster_env.core.schedule import Schedule
from cluster_env.evaluation.intervals import difference_interval
from tune_jobs.replaying.effects import Periods, Side, mean_change
from tune_jobs.tables.columns import SECONDS, SHARE, Column
from tune_jobs.tables.frames import estimate_cells
from tune_jobs.tables.printing import Sheet

_COLUMNS = {
    "policy": Column("policy"),
    "mean_wait": Column("change of the mean wait", SECONDS, "wait"),
    "mean_wait_low": Column("from", SECONDS),
    "mean_wait_high": Column("to", SECONDS),
    "bounded_slowdown": Column("change of the bounded slowdown", short="slowdown"),
    "bounded_slowdown_low": Column("from"),
    "bounded_slowdown_high": Column("to"),
    "utilization": Column("change of utilization", SHARE, "util"),
}


def against(schedules: Mapping[str, Schedule], reference: str, num_jobs: int) -> Sheet:
    """What each schedule has more or less than the reference has, with 95% intervals over weeks.

    Args:
        schedules: of the whole log, by policy; those that lack jobs are left out.
        reference: name of one of them.
        num_jobs: of the log.
    """
    name, title = "against", f"Against {reference}"
    whole = {key: one for key, one in schedules.items() if one.job.size == num_jobs}
    if reference not in whole or len(whole) < 2:
        return Sheet(name, title, (), [])
    first = whole[reference]
    arrival = np.empty(num_jobs, np.int64)
    arrival[first.job] = first.arrival
    periods, place = Periods.of(arrival, int(first.window[0])), np.arange(num_jobs)
    sides = {
        key: Side.of(key, one, place, periods.edges_in(int(one.window[0])))
        for key, one in whole.items()
    }
    before, rows = sides.pop(reference), list[dict[str, Any]]()
    for key, side in sides.items():
        row = {
            "policy": key,
            **estimate_cells("mean_wait", mean_change(before.wait, side.wait, periods)),
        }
        row |= estimate_cells(
            "bounded_slowdown", mean_change(before.slowdown, side.slowdown, periods)
        )
        row["utilization"] = side.use.mean - before.use.mean
        if periods.enough:
            found = difference_interval(side.use, before.use)
            row |= {"utilization_low": found.low, "utilization_high": found.high}
        rows.append(row)
    shown = tuple(one for one in _COLUMNS if periods.enough or not one.endswith(("_low", "_high")))
    note = "policy minus reference, of the same jobs"
    if periods.enough:
        note += f", with 95% intervals over {periods.num} {periods.unit}"
    return Sheet(name, title, shown, rows, note, _COLUMNS)
