"""From the arrays of episodes to the schedule of what became of their jobs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Pieces, Schedule, gather_attributes
from cluster_env.worlds.accrual.arrays import Jobs, Machine, Rows


def schedule_of(
    machine: Machine, jobsets: Sequence[JobSet], jobs: Jobs, rows: Rows, machines: int = 1
) -> Schedule:
    """The jobs that have arrived in each episode, and what became of them.

    Args:
        machine: each of the machines.
        jobsets: what was run.
        jobs: of all jobsets.
        rows: the machines of all episodes, those of one after the other.
        machines: of an episode, whose first row has its queue; pieces name them as nodes.
    """
    of = rows.of[::machines]  # (num_episodes,)
    episode = np.repeat(np.arange(of.size, dtype=np.int32), of["coming"])
    first = np.cumsum(of["coming"]) - of["coming"]
    job = (np.arange(episode.size) - first[episode]).astype(np.int32)
    each, place = jobs.of[of["first"][episode] + job], rows.job[of["place"][episode] + job]
    jobset = of["jobset"][episode].astype(np.int32)
    classes = np.concatenate([one.job_class for one in jobsets])
    return Schedule(
        episode=episode,
        job=job,
        arrival=each["arrival"].astype(np.int32),
        start=place["start"].astype(np.int32),
        finish=place["finish"].astype(np.int32),
        duration=each["duration"].astype(np.int32),
        demand=each["size"][:, None].astype(np.int32),
        end=of["time"].astype(np.int32),
        window=of["window"].astype(np.int32),
        jobset=of["jobset"].astype(np.int32),
        capacity=np.array([machines * machine.processors], np.int32),
        job_class=classes[of["first"][episode] + job],
        attributes=gather_attributes(jobsets, jobset, job),
        pieces=_pieces(rows, np.repeat(first, machines), machines),
    )


def _pieces(rows: Rows, first: NDArray[np.int64], machines: int) -> Pieces:
    """What has been held so far; running jobs' last pieces end at the clock.

    Args:
        rows: the machines of all episodes.
        first: int64 ``(num_rows,)``, row of the schedule of the first job of each one's episode.
        machines: of an episode.
    """
    parts = []
    for r in range(rows.of.size):
        part = np.concatenate(
            [
                rows.pieces[r, : rows.of["num_pieces"][r]],
                np.array(_running_pieces(rows, r), np.int32).reshape(-1, 4),
            ]
        )
        part[:, 0] += first[r]
        parts.append(part)
    job, begin, end, units = np.concatenate(parts).T
    node = np.repeat(np.arange(len(parts)) % machines, [len(part) for part in parts])
    return Pieces(
        job=job,
        begin=begin,
        end=end,
        units=units[:, None],
        node=None if machines == 1 else node.astype(np.int32),
    )


def _running_pieces(rows: Rows, r: int) -> list[tuple[int, int, int, int]]:
    of, now = rows.of[r], int(rows.of["time"][r])
    running = rows.running[r, : of["num_running"]]
    held = rows.job[of["place"] + running]
    return [
        (int(job), int(one["since"]), now, int(one["held"]))
        for job, one in zip(running, held, strict=True)
        if one["since"] < now
    ]
