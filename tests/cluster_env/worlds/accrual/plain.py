"""The same server in plain Python, one episode at a time: what tests compare with.

It is written from the rules of the world and shares no function with the compiled simulator. It
steps through every time step, where the compiled one goes from event to event.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.accrual.heuristics import COLUMNS
from cluster_env.worlds.accrual.world import Accrual
from rllib_configs.worlds.accrual.servers import POLICIES, Setting

Vector = tuple[float, int, int]
"""x1, x2 and x3 of a server."""


def _added(numbers: Iterable[float]) -> float:
    """The sum from the left, as the compiled server has it.

    From Python 3.12 on, ``sum`` corrects its rounding errors, which breaks ties another way.
    """
    total = 0.0
    for number in numbers:
        total += number
    return total


@dataclass
class PlainJob:
    """A job, and what has become of it."""

    number: int
    arrival: int
    size: int
    duration: int
    tuf: list[float]
    left: int
    project: int = 0
    held: int = 0
    start: int = -1
    finish: int = -1
    used: list[tuple[int, int]] = field(default_factory=list)  # step, processors

    def unit(self, end: int) -> float:
        """Unit utility if it finishes at a clock."""
        points = len(self.tuf) // 2
        times, values, power = self.tuf[:points], self.tuf[points:-1], self.tuf[-1]
        when = (end - self.arrival) / self.duration
        pairs = list(zip(times, values, strict=True))
        value = pairs[-1][1] if when > times[0] else values[0]
        for (t0, v0), (t1, v1) in itertools.pairwise(pairs):
            if t0 < when < t1:
                value = v0 + (when - t0) / (t1 - t0) * (v1 - v0)
            elif when == t0 and t0 > times[0]:
                value = v0
        return float(value if power == 1 else value**power)

    def end(self, now: int, processors: int) -> int:
        """Clock of its finish on so many processors."""
        return now + math.ceil(self.left / processors)

    def worth(self, end: int) -> float:
        """Final utility if it finishes at a clock."""
        return self.unit(end) * self.size * self.duration


@dataclass(frozen=True)
class PlainOffer:
    """A candidate: the job, those that it preempts, and the server's state then."""

    job: PlainJob
    preempted: list[PlainJob]
    x: Vector
    unit: float


Choice = Callable[[str, Vector, Sequence[PlainOffer]], int | None]
"""What decides: from ``preempt`` or ``squeeze``, the server and the candidates, one of them."""


Learn = Callable[[Vector, float, int], None]
"""What learns: from the server's state, the utility earned so far, and the clock.

Where there are projects, it learns after each one's turn, and state and utility are of this and
higher ones; whose turn it is says `PlainServer.project`, to what decides as well.
"""


class PlainServer:
    """Best fit on one server, with decisions on preemption and squeezing.

    Args:
        world: its options; a limit on candidates is not kept.
        jobset: what it runs.
        choose: what decides.
        learn: told of the states of section 3.4 that values are learned from, if anything is.
    """

    def __init__(
        self, world: Accrual, jobset: JobSet, choose: Choice, learn: Learn | None = None
    ) -> None:
        self._world, self._choose, self._learn = world, choose, learn
        self._armed = [False] * world.projects
        self._moved = False
        self.project = 0  # the one that starts jobs and decides
        self.now = 0
        self._earned = [0.0] * world.projects  # final utility of what has finished
        tuf = jobset.attributes["tuf"].tolist()
        projects = jobset.job_class.tolist() if world.projects > 1 else [0] * jobset.num_jobs
        self.jobs = [
            PlainJob(k, int(a), int(size), int(d), tuf[k], int(size * d), projects[k])
            for k, (a, d, (size,)) in enumerate(
                zip(jobset.arrival, jobset.duration, jobset.demand, strict=True)
            )
        ]
        self._to_come = list(self.jobs)
        self.waiting: list[PlainJob] = []
        self.running: list[PlainJob] = []

    @property
    def free(self) -> int:
        """Processors that the project may use: those that are idle, and those of lower projects."""
        return self._world.processors - sum(job.held for job in self._seen)

    @property
    def _seen(self) -> list[PlainJob]:
        """Running jobs of the project and of higher ones."""
        return [job for job in self.running if job.project >= self.project]

    @property
    def _own(self) -> list[PlainJob]:
        """Waiting jobs of the project."""
        return [job for job in self.waiting if job.project == self.project]

    @property
    def utility(self) -> float:
        """Final utility of what has finished."""
        return _added(self._earned)

    def play(self) -> None:
        """Plays the episode to its end."""
        while True:
            self._instant()
            idle = not (self._to_come or self.running)
            if idle or self.now == self._world.max_time:
                return
            for job in self.running:
                done = min(job.held, job.left)
                job.left -= done
                job.used.append((self.now, done))
            self.now += 1

    def state(self, jobs: Sequence[tuple[PlainJob, int]] | None = None) -> Vector:
        """x1, x2 and x3 if these jobs ran on so many processors; by default as it is."""
        held = [(job, job.held) for job in self._seen] if jobs is None else jobs
        total = sum(count for _, count in held)
        if not held:
            return 0.0, 0, self._world.processors
        ends = [(job.end(self.now, count), job, count) for job, count in held]
        mean = _added(count * job.unit(end) for end, job, count in ends) / total
        return mean, min(end for end, _, _ in ends) - self.now, self._world.processors - total

    def _instant(self) -> None:
        changed = False
        finished = [job for job in self.running if job.left == 0]
        for job in finished:
            self.running.remove(job)
            job.held, job.finish, changed = 0, self.now, True
            self._earned[job.project] += job.worth(self.now)
        while self._to_come and self._to_come[0].arrival == self.now:
            self.waiting.append(self._to_come.pop(0))
            changed = True
        if self.now > 0 and not changed:
            return
        self._moved = bool(finished)
        for project in reversed(range(self._world.projects)):
            self.project = project
            considered = made = False
            self._settle()
            for kind in ("preempt", "squeeze"):
                if getattr(self._world, kind) and self._own and (offers := self._offers(kind)):
                    considered = True
                    k = self._choose(kind, self.state(), offers)
                    if k is not None:
                        made = True
                        self._take(offers[k])
            if self._learn is not None:
                # Section 3.4: after a decision, or at the next change after one that was not made.
                if made or (self._armed[project] and self._moved):
                    self._learn(self.state(), _added(self._earned[project:]), self.now)
                    self._armed[project] = False
                self._armed[project] = self._armed[project] or (considered and not made)

    def _settle(self) -> None:
        self._grow()
        if self._world.drop_expired and self.free:
            gone = [job for job in self._own if job.worth(job.end(self.now, job.size)) <= 0]
            self.waiting = [job for job in self.waiting if job not in gone]
        while fitting := [job for job in self._own if job.size <= self.free]:
            end = [job.worth(job.end(self.now, job.size)) for job in fitting]
            self._start(max(zip(fitting, end, strict=True), key=lambda p: (p[0].size, p[1]))[0])

    def _grow(self) -> None:
        while self.free:
            own = [job for job in self.running if job.project == self.project]
            small = [job for job in own if job.held < job.size]
            if not small:
                return
            job = max(small, key=self._urgency)
            more = min(self.free, job.size - job.held)
            self._clear(more)
            job.held += more

    def _urgency(self, job: PlainJob) -> float:
        end = job.end(self.now, job.held)
        return job.unit(end) / (end - self.now)

    def _start(self, job: PlainJob) -> None:
        self._moved = True
        self.waiting.remove(job)
        processors = min(job.size, self.free)
        self._clear(processors)
        job.held = processors
        if job.start < 0:
            job.start = self.now
        self.running.append(job)

    def _clear(self, processors: int) -> None:
        """Preempts jobs of lower projects until so many processors are idle."""
        while self._world.processors - sum(job.held for job in self.running) < processors:
            lower = [job for job in self.running if job.project < self.project]
            self._preempt(min(lower, key=lambda job: (self._urgency(job), job.number)))

    def _preempt(self, job: PlainJob) -> None:
        self.running.remove(job)
        job.held = 0
        self.waiting.append(job)
        self.waiting.sort(key=lambda job: job.number)

    def _offers(self, kind: str) -> list[PlainOffer]:
        if kind == "squeeze":
            if not self.free:
                return []
            return [self._offer(job, [], self.free) for job in self._own]
        found = []
        own_jobs = [job for job in self.running if job.project == self.project]
        order = sorted(own_jobs, key=lambda job: (self._urgency(job), job.number))
        for job in self._own:
            end = job.end(self.now, job.size)
            own, preempted, room = job.unit(end) / (end - self.now), [], self.free
            for victim in order:
                if room >= job.size or self._urgency(victim) > own:
                    break
                preempted.append(victim)
                room += victim.held
            if room >= job.size:
                found.append(self._offer(job, preempted, job.size))
        return found

    def _offer(self, job: PlainJob, preempted: list[PlainJob], processors: int) -> PlainOffer:
        stay = [(other, other.held) for other in self._seen if other not in preempted]
        x = self.state([*stay, (job, processors)])
        return PlainOffer(job, preempted, x, job.unit(job.end(self.now, processors)))

    def _take(self, offer: PlainOffer) -> None:
        for job in offer.preempted:
            self._preempt(job)
        self._start(offer.job)
        self._settle()


def smallest(kind: str, x: Vector, offers: Sequence[PlainOffer]) -> int | None:
    """The aggressive policy: the smallest job, of equal ones the one with the highest utility."""
    best = max(range(len(offers)), key=lambda k: (-offers[k].job.size, round(offers[k].unit, 6)))
    return best


def nothing(kind: str, x: Vector, offers: Sequence[PlainOffer]) -> int | None:
    """Neither preempts nor squeezes."""
    return None


def by_value(value: Callable[[Vector], float]) -> Choice:
    """Takes the candidate of the highest value, if that is above the server's own."""

    def choose(kind: str, x: Vector, offers: Sequence[PlainOffer]) -> int | None:
        values = [value(offer.x) for offer in offers]
        best = max(range(len(offers)), key=values.__getitem__)
        return best if values[best] > value(x) else None

    return choose


@dataclass
class PlainLearner:
    """A fuzzy rulebase and its average-reward TD(0): equations 1 and 4 to 6, as they stand.

    Attributes:
        world: where it learns.
        rate: first learning rate of the parameters.
        rho_rate: first learning rate of the average reward.
        half: updates after which both have halved.
        p: the eight numbers, in the order of section 3.3.
        count: updates so far.
    """

    world: Accrual
    rate: float
    rho_rate: float
    half: float
    p: list[float] = field(default_factory=lambda: [0.0] * 8)
    rho: float = 0.0
    count: int = 0
    _last: tuple[Vector, float] | None = None

    def weights(self, x: Vector) -> list[float]:
        """Of the rules; they add up to 1."""
        large = x[0], min(x[1] / self.world.longest, 1.0), x[2] / self.world.processors
        degrees = [(1 - each, each) for each in large]
        return [one * two * three for one, two, three in itertools.product(*degrees)]

    def value(self, x: Vector) -> float:
        """Equation 1."""
        return _added(p * weight for p, weight in zip(self.p, self.weights(x), strict=True))

    @property
    def choose(self) -> Choice:
        """The candidate of the highest value; compiled code knows x1 to a millionth."""
        return by_value(lambda x: self.value((round(x[0] * 1e6) / 1e6, x[1], x[2])))

    def learn(self, x: Vector, earned: float, now: int) -> None:
        """Equations 5 and 6."""
        if self._last is not None:
            before, earned_before = self._last
            reward, decay = earned - earned_before, 1 / (1 + self.count / self.half)
            delta = reward - self.rho + self.value(x) - self.value(before)
            for i, weight in enumerate(self.weights(before)):
                self.p[i] += self.rate * decay * delta * weight
            self.rho += self.rho_rate * decay * (reward - self.rho)
            self.count += 1
        self._last = x, earned


def plain_experiment(setting: Setting, index: int) -> Iterator[tuple[str, str, float]]:
    """What `rllib_configs.worlds.accrual.servers.experiment` does, for one server alone.

    Args:
        setting: what is measured; values are of a rulebase, and time does not count.
        index: of the server.

    Yields:
        Policy, column, and the utility of all jobs that finished in time.
    """
    measured, learned = (
        sample_jobsets(setting.workload(steps), setting.seed, split, [index])[0]
        for split, steps in ((Split.HELD_OUT, setting.steps), (Split.TRAIN, setting.learning.steps))
    )
    for policy in POLICIES:
        for column, (preempt, squeeze) in COLUMNS.items():
            preempts = setting.world.preempt and preempt and policy != "none"
            squeezes = setting.world.squeeze and squeeze and policy != "none"
            world = replace(setting.world, preempt=preempts, squeeze=squeezes)
            choose: Choice = smallest if policy == "aggressive" else nothing
            if policy == "utility":
                how = setting.learning
                learner = PlainLearner(world, how.rate, how.rho_rate, how.half)
                until = replace(world, max_time=how.steps)
                PlainServer(until, learned, learner.choose, learner.learn).play()
                choose = learner.choose
            server = PlainServer(replace(world, max_time=setting.steps), measured, choose)
            server.play()
            yield policy, column, server.utility
