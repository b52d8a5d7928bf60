"""Rules in plain Python, event by event and with nothing remembered: what kernels must equal."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.worlds.hpc.rules import FIXED_ORDERS, Rule
from tests.cluster_env.worlds.hpc.plain_run_times import PlainRunTimes


def plain_starts(
    jobset: JobSet,
    rule: Rule,
    processors: int,
    max_wait: int = 0,
    pass_per_event: bool = False,
    learned: PlainRunTimes | None = None,
) -> list[int]:
    """Start of each job of a jobset that asks for processors alone; without a bound if it is 0."""
    arrival, run = jobset.arrival.tolist(), jobset.duration.tolist()
    limit = jobset.attributes["estimate"].tolist()
    ordered = jobset.attributes.get("order_estimate", np.array(limit)).tolist()
    estimate = jobset.attributes.get("reserve_estimate", np.array(limit)).tolist()
    size = jobset.demand[:, 0].tolist()
    submit = jobset.attributes["submit"]
    start: dict[int, int] = {}
    events = set(arrival)

    def passes() -> Iterator[tuple[int, list[int], list[int]]]:
        """Times at which jobs may start, and who has not finished, or arrived, yet at this time."""
        while events:
            now = min(events)
            events.remove(now)
            ends = [j for _, j in sorted((start[j], j) for j in start if start[j] + run[j] == now)]
            early = [j for j in ends if start[j] + estimate[j] > now]
            coming = [j for j in range(len(run)) if arrival[j] == now]
            if not pass_per_event:
                yield now, [], []
                continue
            if len(early) < len(ends) and not coming:
                yield now, early, []
            yield from ((now, early, coming[k:]) for k in range(1, len(coming) + 1))
            yield from ((now, early[k:], []) for k in range(1, len(early) + 1))

    for now, still_running, not_yet in passes():
        running = [j for j in start if start[j] + run[j] > now or j in still_running]
        gone = {*start, *not_yet}
        waiting = [j for j in range(len(run)) if arrival[j] <= now and j not in gone]
        for j in waiting:
            if learned is not None and arrival[j] == now:
                ends = [(start[k] + run[k], k) for k in start if start[k] + run[k] <= now]
                ordered[j], estimate[j] = learned.predict(j, ends)
        if not waiting:
            continue
        free = processors - sum(size[j] for j in running)

        columns = [np.asarray(column, float) for column in (ordered, size, submit)]
        fixed = FIXED_ORDERS[rule.order](*columns) if rule.order in FIXED_ORDERS else None

        def score(j: int, free: int = free, now: int = now, fixed: Any = fixed) -> float:
            if fixed is not None:
                return float(fixed[j])
            waited, share = now - arrival[j], free / processors * size[j] / processors
            return {
                "wfp3": -((waited / ordered[j]) ** 3) * size[j],
                "unicep": -(waited + 1e-15) / (math.log2(size[j] + 1e-15) * ordered[j]),
                "packer": -share,
                "tetris": -0.5 * (share + 1 / ordered[j]),
            }[rule.order]

        ends = [
            (max(start[j] + _expected(estimate[j], limit[j], now - start[j]), now + 1), size[j])
            for j in running
        ]
        order = sorted(waiting, key=lambda j: (score(j), j))
        overdue = [j for j in waiting if max_wait and now - arrival[j] > max_wait]
        if overdue:
            order = [*overdue, *(j for j in order if j not in overdue)]
            begun = _bounded(rule, overdue, order, free, ends, now, size, limit, processors)
        else:
            begun = _chosen(rule, order, free, ends, now, size, ordered, estimate)
        start.update(dict.fromkeys(begun, now))
        events |= {now + run[j] for j in begun}
    return [start[j] for j in range(len(run))]


def _expected(estimate: int, limit: int, passed: int) -> int:
    """Seconds that a job is expected to run: doubled while it outlives them, up to the limit."""
    while estimate <= passed and estimate < limit:
        estimate = min(2 * estimate, limit)
    return estimate


def _chosen(rule, order, free, ends, now, size, ordered, estimate) -> list[int]:
    if rule.backfilling == "conservative":
        return _planned(order, free, ends, now, size, ordered)
    started: list[int] = []
    blocked = False
    shadow = spare = 0
    for j in order:
        if not blocked:
            fits = size[j] <= free
            if not fits and rule.backfilling == "easy":
                blocked = True
                now_running = ends + [(now + estimate[k], size[k]) for k in started]
                shadow = min(t for t, _ in now_running if free + _ended(now_running, t) >= size[j])
                spare = free + _ended(now_running, shadow) - size[j]
            if not fits and rule.backfilling == "strict":
                return started
        else:
            late = now + ordered[j] > shadow
            fits = size[j] <= free and (not late or size[j] <= spare)
            spare -= size[j] if fits and late else 0
        if fits:
            started.append(j)
            free -= size[j]
    return started


def _bounded(rule, overdue, order, free, ends, now, size, limit, processors) -> list[int]:
    """Overdue jobs are booked one after the other, and the rule goes on in what they leave.

    What is believed of jobs counts for their order alone.
    """
    last = max([end for end, _ in ends], default=now) + sum(limit[j] for j in order) + 1
    room = {t: free + _ended(ends, t) for t in range(now, last + 1)}

    def fits(j: int, at: int) -> bool:
        return all(room.get(t, processors) >= size[j] for t in range(at, at + limit[j]))

    started, blocked = [], False
    for j in order:
        books = j in overdue or rule.backfilling == "conservative"
        if books or (rule.backfilling == "easy" and not blocked):
            at = next(t for t in range(now, last + 1) if fits(j, t))
        else:
            at = now if fits(j, now) else -1
        if at >= 0:
            for t in range(at, min(at + limit[j], last + 1)):
                room[t] -= size[j]
        if at == now:
            started.append(j)
        elif j not in overdue:
            blocked = True
            if rule.backfilling == "strict":
                break
    return started


def _ended(running, time) -> int:
    return sum(units for end, units in running if end <= time)


def _planned(order, free, ends, now, size, estimate) -> list[int]:
    """Books jobs one after the other, looking at each second by itself."""
    last = max([end for end, _ in ends], default=now) + sum(estimate[j] for j in order) + 1
    room = {t: free + _ended(ends, t) for t in range(now, last + 1)}
    started = []
    for j in order:
        at = next(
            t
            for t in range(now, last + 1)
            if all(room.get(u, size[j]) >= size[j] for u in range(t, t + estimate[j]))
        )
        for u in range(at, at + estimate[j]):
            if u in room:
                room[u] -= size[j]
        if at == now:
            started.append(j)
    return started
