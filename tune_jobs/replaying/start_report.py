"""What ``metasched replay --starts`` does: measures how far starts can be foreseen on a log."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import Estimate, Pooled, jobset_interval
from rllib_configs.worlds.hpc.start_times import check_starts
from tune_jobs.commands.logs import Replay
from tune_jobs.measuring.evaluating import held_out_jobsets
from tune_jobs.measuring.work import working
from tune_jobs.replaying.choices import WORLD
from tune_jobs.replaying.outcomes import SIZES
from tune_jobs.replaying.playing import Chosen, choose
from tune_jobs.tables.columns import COUNT, SECONDS, SHARE, Column
from tune_jobs.tables.printing import Sheet, as_data, folded, format_sheet
from tune_jobs.tables.report import Report, tables_of
from tune_jobs.terminal.progress import Progress

USUAL = "fcfs:easy"
"""The policy in charge where none is named."""

LATER_SHARE = 0.5
"""Of a log's time, from which on is measured; before it is only learned."""

EVERYBODY = "all"

_WEEK_S = 7 * 86_400

_COLUMNS = {
    "size": Column("size"),
    "jobs": Column("jobs", COUNT),
    "covered_50": Column("starts inside the interval of 50%", SHARE, "in 50%"),
    "covered_90": Column("starts inside the interval of 90%", SHARE, "in 90%"),
    "width_90": Column("median width of the interval of 90%", SECONDS, "width"),
    "error": Column("median error of the median", SECONDS, "error"),
    "error_of_estimates": Column("the same by users' estimates", SECONDS, "by est."),
    "less_error": Column("reduction of that error", SHARE, "less"),
}


def foresee_starts(options: Replay, progress: Progress) -> Report:
    """Foresees starts in the schedules of policies, and tells by size how far that held.

    Raises:
        InputError: if the log, the machine or a policy cannot be used, or nobody waits.
    """
    chosen = choose(options, USUAL)
    task, remarks = chosen.task, chosen.remarks
    if task.world.kind != WORLD:
        raise InputError(f"--starts needs the world {WORLD}, not {task.world.kind}")
    site: Any = getattr(task.world, "site", None)
    if site is not None and any(one.kind == "failure" for one in site.calendar):
        remarks.append("start times are foreseen as if no node fails: that, nobody foresees")
    pieces, shared = range(len(chosen.specs)), (chosen, options.num_instants, options.seed)
    with working(options.num_runners, progress) as work:
        found = work.measure(
            _foresee, shared, pieces, unit="policy", name=lambda place, _: chosen.specs[place].key
        )
        rows = [row for rows in found for row in rows]
    sheet = Sheet(
        "starts",
        "Start times foreseen in the later half of the log",
        ("policy", *_COLUMNS),
        rows,
        note=f"jobs that waited at {options.num_instants:,} moments, each at every one of these",
        own={"policy": Column("policy"), **_COLUMNS},
    )
    under = ["\n".join(folded([one])) for one in remarks]
    return Report(
        text="\n\n".join([format_sheet(sheet), *under]),
        sheets=[sheet],
        tables=tables_of([sheet]),
        data={"jobs": chosen.jobs.num_jobs, "remarks": remarks, **as_data([sheet])},
        remarks=remarks,
        written="Wrote {out}: starts.csv",
    )


def _foresee(shared: tuple[Chosen, int, int], place: int) -> list[dict[str, Any]]:
    """The rows of a policy, by its index: a piece of work."""
    chosen, num_instants, seed = shared
    spec, task = chosen.specs[place], chosen.task
    (jobset,) = held_out_jobsets(chosen.protocol)
    policy = spec.make(chosen.protocol).members[0]
    checked = check_starts(jobset, task.world, policy, num_instants=num_instants, seed=seed)
    later = checked.select(checked.share >= LATER_SHARE)
    if not later.job.size:
        raise InputError(
            f"under {spec.key} no job waits at {num_instants} moments of {chosen.jobs.path}, so "
            "there is nothing to foresee"
        )
    return _rows(spec.key, later, int(jobset.arrival[-1]))


def _rows(policy: str, checked: Any, span: int) -> list[dict[str, Any]]:
    """All jobs, then those of each size that there is."""
    everybody = np.ones(checked.job.size, np.bool_)
    groups = {EVERYBODY: everybody}
    groups |= {name: checked.size == place for place, name in enumerate(SIZES)}
    return [
        _row(policy, name, checked.select(one), span) for name, one in groups.items() if one.any()
    ]


def _row(policy: str, name: str, checked: Any, span: int) -> dict[str, Any]:
    low_90, low_50, median, high_50, high_90 = checked.shown
    week = (checked.share * (span / _WEEK_S)).astype(np.int64)

    def covered(low: NDArray[np.float64], high: NDArray[np.float64]) -> Estimate:
        # Starts are whole seconds, and so are the ends that people see. Jobs of a week wait for the
        # same others, so that the interval is one over weeks.
        inside = (checked.actual >= np.rint(low)) & (checked.actual <= np.rint(high))
        totals = np.bincount(week, inside).astype(np.float64)
        return jobset_interval(Pooled(totals, np.bincount(week).astype(np.float64)))

    in_50, in_90 = covered(low_50, high_50), covered(low_90, high_90)

    error = float(np.median(np.abs(checked.actual - median)))
    by_estimates = float(np.median(np.abs(checked.actual - checked.plan)))
    return {
        "policy": policy,
        "size": name,
        "jobs": int(checked.job.size),
        "covered_50": in_50.value,
        "covered_50_low": in_50.low,
        "covered_50_high": in_50.high,
        "covered_90": in_90.value,
        "covered_90_low": in_90.low,
        "covered_90_high": in_90.high,
        "width_90": float(np.median(high_90 - low_90)),
        "error": error,
        "error_of_estimates": by_estimates,
        "less_error": 1 - error / by_estimates if by_estimates else float("nan"),
    }
