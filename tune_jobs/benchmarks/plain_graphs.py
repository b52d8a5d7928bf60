"""The world of task graphs again, in plain Python: sets, dictionaries and a heap of events."""

import heapq
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cluster_env.core.graphs import stages_of
from cluster_env.core.jobs import JobSet

LEVELS = [2, 5, 10, 20, 40, 50, 60, 80, 100]  # executors for which durations were measured
WORD = 2**64 - 1
COMMON = ("common",)


def hashed(seed: int, job: int, stage: int, number: int) -> float:
    """A uniform number in [0, 1) that depends on its arguments alone."""
    factors = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93)
    x = sum(f * v for f, v in zip(factors, (seed, job, stage, number), strict=True)) & WORD
    for shift, factor in ((30, factors[1]), (27, factors[2]), (31, 1)):
        x = ((x ^ (x >> shift)) * factor) & WORD
    return (x >> 11) / 2**53


@dataclass(eq=False)
class Stage:
    """A stage of a job, and what has become of its tasks."""

    job: "Job"
    index: int
    tasks: int
    time: float
    parents: list["Stage"]
    left: int = 0  # tasks that have not begun
    ended: int = 0
    coming: int = 0
    promised: int = 0
    chosen: bool = False

    @property
    def wants(self) -> int:
        """Tasks that nobody is to run yet."""
        return self.left - self.coming - self.promised

    @property
    def ready(self) -> bool:
        """Whether its parents have ended."""
        return all(parent.ended == parent.tasks for parent in self.parents)

    @property
    def path(self) -> float:
        """Time from its beginning to the end of its job."""
        below = [one.path for one in self.job.stages if self in one.parents]
        return self.time + max(below, default=0.0)


@dataclass(eq=False)
class Job:
    """A job, whose stages stand in their order."""

    index: int
    arrival: int
    stages: list[Stage] = field(default_factory=list)
    held: int = 0
    here: int = 0  # executors at it
    finish: int = -1

    @property
    def work(self) -> float:
        """Executors times time."""
        return sum(stage.tasks * stage.time for stage in self.stages)

    @property
    def all_begun(self) -> bool:
        """Whether no task is left to begin."""
        return all(stage.left == 0 for stage in self.stages)

    def takers(self) -> list[Stage]:
        """Stages that can get executors."""
        return [
            stage
            for stage in self.stages
            if stage.wants > 0
            and not stage.chosen
            and all(parent.wants <= 0 for parent in stage.parents)
        ]


@dataclass(eq=False)
class Executor:
    """An executor: where it stands and what it ran last."""

    pool: Any = COMMON
    job: Job | None = None
    last: Stage | None = None
    busy: bool = False


class PlainGraphs:
    """One episode by a rule: ``fifo``, ``fair``, ``weighted_fair``, ``sjf_cp``."""

    def __init__(self, world: Any, jobset: JobSet, rule: str, exponent: float = -1.0) -> None:
        self.world, self.rule, self.exponent = world, rule, exponent
        self.library = world.library
        self.executors = [Executor() for _ in range(world.executors)]
        self.promises: dict[Any, dict[Any, int]] = {}
        self.source: Any = None
        self.now, self.order = 0, 0
        self.begun: list[tuple[int, int, int, int, int]] = []  # job, stage, begin, end, executor
        stages = stages_of(jobset)
        self.draws = jobset.attributes["draw"]
        self.graph = jobset.attributes.get("graph", np.full(jobset.num_jobs, -1))
        self.jobs = []
        for j in range(jobset.num_jobs):
            job = Job(j, int(jobset.arrival[j]))
            for s in range(int((stages.tasks[j] > 0).sum())):
                mask, tasks = int(stages.parents[j, s]), int(stages.tasks[j, s])
                parents = [one for one in job.stages if mask >> one.index & 1]
                job.stages.append(Stage(job, s, tasks, stages.time[j, s], parents, left=tasks))
            self.jobs.append(job)
        self.heap: list[Any] = [(job.arrival, job.index - len(self.jobs), job) for job in self.jobs]
        self.present: list[Job] = []

    # Who stands where.

    def size(self, pool: Any) -> int:
        """Executors in a pool."""
        return sum(one.pool == pool for one in self.executors)

    def free(self) -> int:
        """Executors that are to be assigned."""
        taken = sum(self.promises.get(self.source, {}).values())
        return 0 if self.source is None else self.size(self.source) - taken

    @staticmethod
    def owner(pool: Any) -> Job | None:
        """The job that a pool belongs to."""
        return pool.job if isinstance(pool, Stage) else pool if isinstance(pool, Job) else None

    def promise(self, goal: Any, count: int) -> None:
        """Promises executors of the source to a stage, or to the common pool."""
        kept = self.promises.setdefault(self.source, {})
        kept[goal] = kept.get(goal, 0) + count
        if goal is not COMMON:
            goal.promised += count
            goal.job.held += count * (goal.job is not self.owner(self.source))

    def keep(self, pool: Any) -> Any:
        """Takes one executor off the oldest promise of a pool."""
        kept = self.promises[pool]
        goal = next(iter(kept))
        kept[goal] -= 1
        if not kept[goal]:
            del kept[goal]
        if goal is not COMMON:
            goal.promised -= 1
            goal.job.held -= goal.job is not self.owner(pool)
        return goal

    def leave(self, one: Executor) -> None:
        """Lets an executor belong to no job."""
        if one.job is not None:
            one.job.held -= 1
            one.job.here -= 1
        one.job, one.last = None, None

    def rest(self, one: Executor) -> None:
        """Lets an idle executor wait at its job or in the common pool."""
        if one.pool is COMMON:
            return
        if one.job is not None and not one.job.all_begun:
            one.pool = one.job
        else:
            one.pool = COMMON
            self.leave(one)

    def substitute(self, one: Executor) -> Stage | None:
        """A stage for an executor that finds no task left at its own."""
        own, most = one.job, len(self.executors)
        trapped = own is self.jobs[0] and own.held >= most and self.owner(self.source) is not own
        if own is not None and not trapped and own.takers():
            return own.takers()[0]
        for job in self.present:
            if job is not own and job.held < most and job.takers():
                return job.takers()[0]
        return None

    # What executors do.

    def push(self, until: int, one: Executor, stage: Stage) -> None:
        """Lets something end for an executor."""
        heapq.heappush(self.heap, (until, self.order, (one, stage)))
        self.order += 1

    def send(self, one: Executor, target: Stage) -> None:
        """Sends an executor to a stage."""
        stage = target if target.left else self.substitute(one)
        if stage is None:
            self.rest(one)
        elif one.job is not stage.job:
            one.pool = None
            self.leave(one)
            stage.job.held += 1
            stage.coming += 1
            self.push(self.now + self.world.delay, one, stage)
        elif not stage.ready:
            one.pool, one.last = stage.job, None
        else:
            one.pool = stage
            end = self.now + self.lasting(one, stage)
            stage.left -= 1
            self.begun.append(
                (stage.job.index, stage.index, self.now, end, self.executors.index(one))
            )
            one.last, one.busy = stage, True
            self.push(end, one, stage)

    def lasting(self, one: Executor, stage: Stage) -> int:
        """The duration of the next task of a stage on an executor."""
        seed, number = (int(value) for value in self.draws[stage.job.index])
        graph, left = int(self.graph[stage.job.index]), stage.left - 1
        u = hashed(seed, number, stage.index, 2 * left + 1)
        if graph < 0:
            lasting = int(stage.time * (1.0 + self.world.spread * (2.0 * u - 1.0)) + 0.5)
            return max(lasting, 1) + (self.world.warmup if one.last is None else 0)
        # Five executors or fewer are one level; between levels the nearer is the likelier.
        m, levels = max(stage.job.here, 5), LEVELS
        above = next((level for level in levels if level >= m), levels[-1])
        if above > m:
            below = levels[levels.index(above) - 1]
            r = 1 + int(hashed(seed, number, stage.index, 2 * left) * (above - below))
            above = below if r <= m - below else above
        row, k = int(self.library.row[graph]) + stage.index, levels.index(above)
        lists = self.library.durations

        def values(wave: int) -> list[int]:
            first, count = lists.first[row, wave, k], lists.sizes[row, wave, k]
            return lists.values[first : first + count].tolist()

        fresh, first, rest = (values(wave) for wave in range(3))
        if one.last is None:
            chosen = fresh or [value + self.world.warmup for value in first]
        else:
            chosen = (rest if one.last is stage else []) or first or fresh
        return chosen[int(u * len(chosen))]

    def end(self, one: Executor, stage: Stage) -> None:
        """Lets a task end."""
        one.busy = False
        stage.ended += 1
        if stage.left:
            self.send(one, stage)
            return
        job, child_begins = stage.job, False
        if stage.ended == stage.tasks:
            child_begins = any(stage in child.parents and child.ready for child in job.stages)
            if all(each.ended == each.tasks for each in job.stages):
                for other in self.executors:
                    if other.pool is job:
                        self.rest(other)
                job.finish = self.now
                self.present.remove(job)
        if self.promises.get(stage):
            goal = self.keep(stage)
            if goal is COMMON:
                self.rest(one)
            else:
                self.send(one, goal)
            self.source = job if child_begins else self.source
            return
        one.last, self.source = None, stage
        if child_begins:
            one.pool, self.source = job, job

    # Decisions.

    def takers(self) -> list[tuple[Job, list[Stage]]]:
        """Jobs with stages that can get executors, in their order."""
        own = self.owner(self.source)
        jobs = [own] if own in self.present else []
        jobs += [job for job in self.present if job is not own and job.held < len(self.executors)]
        return [(job, job.takers()) for job in jobs if job.takers()]

    def decide(self) -> tuple[Stage, int] | None:
        """The stage that gets executors next, and how many."""
        own, free, most = self.owner(self.source), self.free(), len(self.executors)
        if self.rule == "sjf_cp":
            job, stages = min(self.takers(), key=lambda pair: pair[0].work)
            stage = max(stages, key=lambda one: (one.ready, one.path, -one.index))
            return stage, min(free, stage.wants)
        for job, stages in self.takers():
            stage = next((one for one in stages if one.ready), stages[0])
            cap = most
            if self.rule == "fair":
                cap = math.ceil(most / len(self.present))
            elif self.rule == "weighted_fair":
                total = sum(one.work**self.exponent for one in self.present)
                cap = math.ceil(most * (job.work**self.exponent / total))
            room = free if job is own else min(free, cap - job.held)
            if room > 0:
                return stage, min(room, stage.wants)
        return None

    def round(self, forced: bool) -> None:
        """Assigns the executors of the source."""
        decided = False
        while self.free() > 0 and self.takers():
            decided, decision = True, self.decide()
            if decision is None and forced:
                decision = self.takers()[0][1][0], 1
            forced = False
            if decision is None:
                break
            self.promise(*decision)
            decision[0].chosen = True
        idle = [one for one in self.executors if one.pool == self.source and not one.busy]
        if not decided:
            for one in idle:
                self.rest(one)
        else:
            if self.free() > 0:
                self.promise(COMMON, self.free())
            for one in idle:
                goal, job = self.keep(self.source), self.owner(self.source)
                if goal is not COMMON:
                    self.send(one, goal)
                elif job is None or (self.source is job and not job.all_begun):
                    self.promises[self.source] = {}
                    break
                else:
                    self.rest(one)
        for job in self.present:
            for stage in job.stages:
                stage.chosen = False
        self.source = None

    def play(self) -> list[int]:
        """Plays the episode; returns finishes of all jobs."""
        while any(job.finish < 0 for job in self.jobs):
            if not self.heap:  # nothing will happen: executors that wait have to go
                for one in self.executors:
                    self.source = one.pool
                    if self.takers():
                        break
                self.round(forced=True)
                continue
            self.now, _, what = heapq.heappop(self.heap)
            if isinstance(what, Job):
                self.present.append(what)
                self.source = COMMON if self.size(COMMON) else self.source
            elif what[0].busy:
                self.end(*what)
            else:
                one, stage = what
                one.job, one.pool = stage.job, stage.job
                stage.job.here += 1
                stage.coming -= 1
                self.send(one, stage)
            more = self.now == 0 and self.heap and self.heap[0][0] == 0
            if self.free() > 0 and not more:
                self.round(forced=False)
        return [job.finish for job in self.jobs]
