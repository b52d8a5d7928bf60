"""A scorer in plain Python, nothing remembered: what the kernel must equal."""

import math

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.worlds.hpc.scorer import Scorer
from tests.cluster_env.worlds.hpc.plain_rules import _ended, _expected
from tests.cluster_env.worlds.hpc.plain_run_times import PlainRunTimes


def plain_scored_starts(
    jobset: JobSet, scorer: Scorer, processors: int, learned: PlainRunTimes | None = None
) -> list[int]:
    """Start of each job of a jobset that asks for processors alone."""
    plain = _Plain(jobset, scorer, processors)
    now = 0
    while now >= 0:
        plain.learn(now, learned)
        plain.decide(now)
        now = plain.next_event(now)
    return [plain.start[job] for job in range(jobset.num_jobs)]


class _Plain:
    def __init__(self, jobset: JobSet, scorer: Scorer, processors: int) -> None:
        limit = jobset.attributes["estimate"]
        self.arrival, self.run = jobset.arrival.tolist(), jobset.duration.tolist()
        self.limit = limit.tolist()
        self.ordered = jobset.attributes.get("order_estimate", limit).tolist()
        self.reserved = jobset.attributes.get("reserve_estimate", limit).tolist()
        self.size = jobset.demand[:, 0].tolist()
        self.scorer, self.processors = scorer, processors
        self.start: dict[int, int] = {}

    def next_event(self, now: int) -> int:
        ends = [self.start[j] + self.run[j] for j in self.start]
        return min((t for t in self.arrival + ends if t > now), default=-1)

    def learn(self, now: int, learned: PlainRunTimes | None) -> None:
        ends = [(self.start[j] + self.run[j], j) for j in self.start]
        for job, at in enumerate(self.arrival):
            if learned is not None and at == now:
                over = [one for one in ends if one[0] <= now]
                self.ordered[job], self.reserved[job] = learned.predict(job, over)

    def decide(self, now: int) -> None:
        mode = self.scorer.mode
        blocked, shadow, spare = None, 0, 0
        while waiting := self.waiting(now):
            free = self.free(now)
            running = [j for j in self.start if self.start[j] + self.run[j] > now]
            if mode == "skip":
                waiting = [j for j in waiting if self.size[j] <= free]
            elif blocked is not None:
                waiting = [
                    j
                    for j in waiting
                    if j != blocked
                    and self.size[j] <= free
                    and (now + self.ordered[j] <= shadow or self.size[j] <= spare)
                ]
            if not waiting:
                return
            _, job = min((self.score(j, now, free, running), j) for j in waiting)
            if self.size[job] > free:
                if mode == "strict":
                    return
                ends = [(self.end(j, now, 1), self.size[j]) for j in running]
                blocked = job
                shadow = min(t for t, _ in ends if free + _ended(ends, t) >= self.size[job])
                spare = free + _ended(ends, shadow) - self.size[job]
                continue
            if blocked is not None and now + self.ordered[job] > shadow:
                spare -= self.size[job]
            self.start[job] = now

    def waiting(self, now: int) -> list[int]:
        return [j for j, at in enumerate(self.arrival) if at <= now and j not in self.start]

    def free(self, now: int) -> int:
        held = (self.size[j] for j in self.start if self.start[j] + self.run[j] > now)
        return self.processors - sum(held)

    def end(self, job: int, now: int, least: int) -> int:
        passed = now - self.start[job]
        seconds = _expected(self.reserved[job], self.limit[job], passed)
        return max(self.start[job] + seconds, now + least)

    def score(self, job: int, now: int, free: int, running: list[int]) -> float:
        row = np.array([*self.of_job(job, now, free), 1.0])
        column = np.array([*self.of_state(now, free, running), 1.0])
        return float(row @ self.scorer.weights @ column)

    def moments(self, values: list[float]) -> tuple[float, float]:
        """Mean and deviation with weights that fade, of at least half a unit."""
        mean = square = 0.0
        for count, value in enumerate(values, 1):
            share = 1 / min(count, 50)
            mean, square = mean + share * (value - mean), square + share * (value**2 - square)
        return mean, max(math.sqrt(max(square - mean**2, 0)), 0.5)

    def of_job(self, job: int, now: int, free: int) -> list[float]:
        come = [j for j, at in enumerate(self.arrival) if at <= now]
        log, size = math.log(self.ordered[job]), self.size[job]
        mean, deviation = self.moments([math.log(self.ordered[j]) for j in come])
        area_mean, area_deviation = self.moments(
            [math.log(self.ordered[j] * self.size[j]) for j in come]
        )
        gaps = [self.arrival[j] - self.arrival[max(j - 1, 0)] for j in come]
        return [
            log / 4,
            math.log(size / self.processors) / 4,
            math.log(size) / max(math.log(self.processors), math.log(2)),
            (log - mean) / deviation,
            math.log(1 + (now - self.arrival[job]) / self.ordered[job]) / 4,
            size / self.processors,
            min(size / max(free, 1), 2),
            float(size <= free),
            (log + math.log(size) - area_mean) / area_deviation,
            (log - self.moments([math.log(1 + gap) for gap in gaps])[0]) / 4,
        ]

    def of_state(self, now: int, free: int, running: list[int]) -> list[float]:
        come = [j for j, at in enumerate(self.arrival) if at <= now]
        waiting = self.waiting(now)
        deviation = self.moments([math.log(self.ordered[j]) for j in come])[1]
        gaps = [self.arrival[j] - self.arrival[max(j - 1, 0)] for j in come]
        work = self.moments([self.ordered[j] * self.size[j] for j in come])[0]
        load = work / self.processors / max(self.moments([float(gap) for gap in gaps])[0], 1)
        left = [(self.end(j, now, -(10**9)) - now) * self.size[j] for j in running]
        return [
            free / self.processors,
            math.log(1 + len(waiting)) / 4,
            math.log(1 + sum(self.ordered[j] * self.size[j] for j in waiting) / self.processors)
            / 8,
            math.log(1 + min((max(self.end(j, now, 0) - now, 0) for j in running), default=0)) / 8,
            float(np.mean([math.log(self.ordered[j]) for j in waiting])) / 4,
            math.log(1 + max(sum(left), 0) / self.processors) / 8,
            math.log(1 + len(running)) / 4,
            float(np.mean([math.log(self.ordered[j]) for j in running] or [0])) / 4,
            math.log(max(load, 1e-6)) / 2,
            deviation / 2,
        ]
