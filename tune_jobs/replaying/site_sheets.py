"""A site beside its log: what each partition has, and what its jobs held."""

from typing import Any

import numpy as np

from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.replaying.description import MOST_ROWS, Played
from tune_jobs.tables.columns import COUNT, SECONDS, SHARE, Column
from tune_jobs.tables.printing import Sheet


def partitions(jobs: RecordedJobs, site: Any, played: Played) -> Sheet:
    """Nodes and processors of the partitions of a site, and their jobs.

    Args:
        jobs: of a log, at the site.
        site: the description, as `HPC.site` has it.
        played: when the jobs started.
    """
    place = jobs.attributes["partition"]
    work = (jobs.run * jobs.demand[:, 0]).astype(np.float64)
    rows: list[dict[str, Any]] = []
    for k, partition in enumerate(site.partitions):
        own = place == k
        nodes = site.node_set(k)
        rows.append(
            {
                "partition": partition.name,
                "nodes": int(nodes.sum()),
                "processors": int(site.units[nodes, 0].sum()),
                "held": _held_at_once(jobs, k),
                "longest": float(partition.max_time_s) or float("nan"),
                "jobs": int(own.sum()),
                "of_work": float(work[own].sum() / work.sum()),
                "mean_wait": float(played.wait[own].mean()) if own.any() else float("nan"),
            }
        )
    own_columns = {
        "nodes": Column("nodes", COUNT),
        "processors": Column("processors", COUNT, "cpus"),
        "held": Column("held at once", COUNT, "held"),
        "longest": Column("longest limit", SECONDS, "limit"),
        "of_work": Column("share of work", SHARE, "% work"),
    }
    shown = ["partition", *list(own_columns)[:4], "jobs", "of_work", "mean_wait"]
    note = f"held: most processors that its jobs held at once at the site; waits {played.words}"
    title = "Partitions of the site"
    return Sheet("partitions", title, shown, rows, note, own_columns, MOST_ROWS)


def too_full(jobs: RecordedJobs, site: Any) -> list[str]:
    """A sentence for each partition whose jobs held more at once than its nodes have."""
    sentences = []
    for k, partition in enumerate(site.partitions):
        held, has = _held_at_once(jobs, k), int(site.units[site.node_set(k), 0].sum())
        if held > has:
            sentences.append(
                f"as recorded, jobs of the partition {partition.name} held {held:,.0f} processors "
                f"at once, but its nodes have {has:,}: the description or the waits are wrong"
            )
    return sentences


def _held_at_once(jobs: RecordedJobs, partition: int) -> float:
    """Most processors that the jobs of a partition held at once; NaN where nobody says it."""
    own = jobs.select(jobs.attributes["partition"] == partition)
    if own.wait is None:
        return float("nan")
    if not own.num_jobs or own.most_in_use is None:
        return 0.0
    return float(own.most_in_use[0])
