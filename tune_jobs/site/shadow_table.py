"""What a policy would do with the jobs that wait, as a table on a terminal."""

import time
from collections.abc import Sequence

from cluster_env.core.durations import duration
from rllib_configs.snapshot import BLOCKED, RUNNING, SiteJob, Snapshot, StartTime
from tune_jobs.site.deciding import Decision
from tune_jobs.site.starting import ASSUMPTIONS
from tune_jobs.tables.columns import Column
from tune_jobs.tables.printing import Sheet, format_sheet

MOST_ROWS = 40
NO_ROOM = "no room"
"""Of jobs that neither start nor are held back: they do not fit."""


def shadow_table(
    snapshot: Snapshot,
    decision: Decision,
    policy: str,
    start_times: Sequence[StartTime] | None = None,
) -> str:
    """The jobs that wait in the policy's order, then those that the site blocks.

    Args:
        snapshot: the site.
        decision: what the policy would do.
        policy: its name.
        start_times: when jobs start, if that was asked for.
    """
    jobs = {job.job: job for job in snapshot.jobs}
    does = {one.job: f"held: {one.why}" for one in decision.held}
    does |= {one.job: "start" for one in decision.starts}
    foreseen = {one.job: one for one in start_times or ()}
    blocked = [job.job for job in snapshot.in_state(BLOCKED)]
    does |= {job: f"Slurm: {jobs[job].reason}" for job in blocked}

    def later(when: int) -> str:
        return duration(max(when - snapshot.time, 0)) if when else "-"

    def row(job: SiteJob) -> dict[str, str]:
        cells = {
            "job": job.job,
            "user": job.user,
            "partition": job.partition,
            "wait": duration(max(snapshot.time - job.eligible, 0)) if job.eligible else "-",
            "now": does.get(job.job, NO_ROOM),
            "slurm": later(job.expected),
        }
        if start_times is not None:
            one = foreseen.get(job.job)
            at = one.at if one else None
            cells["median"] = later(at[2]) if at else "-"
            cells["most"] = f"{later(at[0])} - {later(at[4])}" if at else "-"
            cells["latest"] = later(one.latest or 0) if one else "-"
            cells["lacks"] = "; ".join(one.not_simulated) if one else ""
        return cells

    heads = {"job": "job", "user": "user", "partition": "partition", "wait": "waited"}
    heads["now"] = f"{policy} now"
    notes = list[str]()
    if start_times is not None:
        heads |= {"median": "starts in", "most": "90% between"}
        if any(one.latest is not None for one in start_times):
            heads["latest"] = "latest"
            notes.append(ASSUMPTIONS)
        if any(one.not_simulated for one in start_times):
            heads["lacks"] = "not simulated"
    heads["slurm"] = "Slurm: in"
    order = [*decision.order, *blocked]
    rows = [row(jobs[name]) for name in order[:MOST_ROWS]]
    clock = time.strftime("%H:%M:%S", time.localtime(snapshot.time))
    running = len(snapshot.in_state(RUNNING))
    title = (
        f"{clock}: {running:,} running, {len(order):,} waiting, {len(decision.starts):,} to start"
    )
    if not rows:
        return title
    own = {name: Column(head) for name, head in heads.items()}
    left_out = len(order) - len(rows)
    if left_out:
        notes.insert(0, f"and {left_out:,} more; all are in the file of --out")
    return format_sheet(Sheet("shadow", title, tuple(heads), rows, "; ".join(notes), own))
