"""A site in plain Python, event by event and second by second: what the kernel must equal.

Everything is worked out anew at each event, from the rules of `cluster_env.worlds.hpc.site` and not
from its code: what is free on a node is asked for each second, and limits are sums over jobs.
"""

from dataclasses import dataclass, field
from typing import Any

from cluster_env.core.jobs import JobSet
from cluster_env.sites.description import Site

_MANY = 2**62
_FIELDS = ("jobs", "processors", "memory", "gpus", "nodes")

Held = dict[int, int]  # node -> processors


@dataclass
class PlainJob:
    """A job and what has become of it."""

    number: int
    arrival: int
    run: int
    limit: int
    demand: list[int]
    partition: int
    values: dict[str, int]
    after: list[int]
    eligible: int = -1
    start: int = -1
    finish: int = -1
    lost: bool = False
    never: bool = False
    held: Held = field(default_factory=dict)


class PlainSite:
    """Plays one jobset; `jobs` say what has become of each."""

    def __init__(
        self,
        site: Site,
        jobset: JobSet,
        order: str = "fcfs",
        backfilling: str = "easy",
        max_wait: int = 0,
    ) -> None:
        self.site, self.order, self.backfilling, self.max_wait = site, order, backfilling, max_wait
        self.units = site.units.tolist()
        self.now = 0
        self.queue: list[PlainJob] = []
        self.passes = 0
        columns = jobset.attributes

        def value(name: str, job: int, default: int) -> int:
            return int(columns[name][job]) if name in columns else default

        ids = columns.get("job_id")
        self.jobs = []
        for j in range(jobset.num_jobs):
            names = ("qos", "account", "array", "reservation", "think_s")
            values = {name: value(name, j, -1) for name in names}
            names = ("user", "nodes", "exclusive", "features", "any_features", "throttle")
            values |= {name: value(name, j, 0) for name in (*names, "after_ok", "failed")}
            before = (
                []
                if ids is None
                else [k for k, one in enumerate(ids) if one == columns["after"][j]]
            )
            limit = value("estimate", j, int(jobset.duration[j]))
            self.jobs.append(
                PlainJob(
                    j,
                    int(jobset.arrival[j]),
                    int(jobset.duration[j]),
                    limit,
                    jobset.demand[j].tolist(),
                    value("partition", j, site.default_partition),
                    values,
                    before,
                )
            )

    # What a job may use.

    def nodes(self, job: PlainJob) -> list[int]:
        """The nodes that it may use, those of low weight first."""
        values = job.values
        mask = self.site.node_set(
            job.partition, values["features"], values["any_features"], values["reservation"]
        )
        return sorted(
            (n for n in range(len(self.units)) if mask[n]),
            key=lambda n: (self.site.node_weights[n], n),
        )

    def exclusive(self, job: PlainJob) -> bool:
        return bool(job.values["exclusive"]) or self.site.partitions[job.partition].exclusive

    def count_of_nodes(self, job: PlainJob) -> tuple[int, int]:
        partition = self.site.partitions[job.partition]
        if job.values["nodes"]:
            count = min(job.values["nodes"], job.demand[0])
            return count, count
        least = min(max(partition.min_nodes, 1), job.demand[0])
        own = [most for key, _, most in self.charges(job) if key[2] == "nodes"]
        return least, min([*own, partition.max_nodes or len(self.units)])

    def takes(self, job: PlainJob, node: int, size: int) -> list[int]:
        """Units that it holds on a node with so many processors."""
        if self.exclusive(job):
            return self.units[node]
        return [-(-units * size // job.demand[0]) for units in job.demand]

    def can(self, job: PlainJob, node: int, free: list[int]) -> int:
        """Most processors for which it has room."""
        if self.exclusive(job) and free[0] < self.units[node][0]:
            return 0
        size, most = job.demand[0], min(free[0], job.demand[0])
        while most > 0:
            shares = [-(-units * most // size) for units in job.demand]
            if all(share <= there for share, there in zip(shares, free, strict=True)):
                break
            most -= 1
        return max(most, 0)

    # The calendar.

    def failed(self, node: int) -> bool:
        return any(
            one.kind == "failure" and mask[node] and one.start <= self.now < one.end
            for one, mask in zip(self.site.calendar, self.site.outage_nodes, strict=True)
        )

    def kept_off(self, job: PlainJob, node: int, second: int) -> bool:
        """Whether something planned keeps a job off a node in a second, as is known now."""
        return any(
            one.kind != "failure"
            and entry != job.values["reservation"]
            and mask[node]
            and one.known_from <= self.now
            and one.start <= second < one.end
            for entry, (one, mask) in enumerate(
                zip(self.site.calendar, self.site.outage_nodes, strict=True)
            )
        )

    # Limits.

    def charges(self, job: PlainJob) -> list[tuple[Any, int, int]]:
        """Of each limit that holds for a job: what it is, what the job counts as, and the most."""
        site, values, found = self.site, job.values, []
        of_kind = {
            kind: [one for one in site.limits if one.kind == kind]
            for kind in ("qos", "account", "user")
        }

        def at(kind: str, place: int) -> Any:
            return of_kind[kind][place] if 0 <= place < len(of_kind[kind]) else None

        name = site.partitions[job.partition].qos
        of_partition = next((one for one in of_kind["qos"] if one.name == name), None)
        of_job, of_user = at("qos", values["qos"]), at("user", values["user"])
        of_account = at("account", values["account"])
        widest = max(self.units[n][0] for n in self.nodes(job))
        least = job.values["nodes"] or max(site.partitions[job.partition].min_nodes, 1)
        nodes = max(min(least, job.demand[0]), -(-job.demand[0] // widest))
        whole = nodes * widest if self.exclusive(job) else 0
        others = dict(zip(site.resources, job.demand, strict=True))
        amount = {"jobs": 1, "nodes": nodes, "memory": 0, "gpus": 0, **others}
        amount["processors"] = max(whole, job.demand[0])
        for unit in _FIELDS:
            for whose, owner in (
                ("", 0),
                ("_per_user", values["user"]),
                ("_per_account", values["account"]),
            ):
                # The first that has such a limit holds; the others count the job all the same.
                names = [(one, unit + whose, owner) for one in (of_partition, of_job)]
                names = names[:1] if of_partition is of_job else names
                if whose == "_per_user":
                    names.append((of_user, unit, 0))
                names.append((of_account, unit + whose, owner))
                holds = True
                for one, name, of in names:
                    most = getattr(one, name) if one else 0
                    if most:
                        key = (one.kind, one.name, unit, name, of)
                        found.append((key, amount[unit], most if holds else _MANY))
                        holds = False
        if values["array"] >= 0 and values["throttle"]:
            found.append((("array", values["array"], ""), 1, values["throttle"]))
        return found

    def within_limits(self, job: PlainJob, held: Held | None = None) -> bool:
        """Whether no limit blocks a job; those on nodes count where it is known what it gets."""
        used: dict[Any, int] = {}
        nodes: dict[Any, set[int]] = {}
        for other in self.running():
            for key, amount, _ in self.charges(other):
                used[key] = used.get(key, 0) + amount
                nodes[key] = nodes.get(key, set()) | set(other.held)
        for key, amount, most in self.charges(job):
            if key[2] == "nodes":
                if held is not None and len(nodes.get(key, set()) | set(held)) > most:
                    return False
            elif used.get(key, 0) + amount > most:
                return False
        return True

    # Time.

    def running(self) -> list[PlainJob]:
        return [job for job in self.jobs if job.start >= 0 and job.finish < 0]

    def play(self) -> "PlainSite":
        """Plays to the end."""
        self.times = {job.arrival for job in self.jobs}
        for one in self.site.calendar:
            self.times |= {one.start, one.end}
            self.times |= {one.known_from} if one.kind != "failure" else set()
        while self.times:
            self.now = min(self.times)
            self.times.remove(self.now)
            for job in self.running():
                if job.start + job.run == self.now:
                    job.finish = self.now
            self.fail()
            self.let_come()
            self.schedule()
        return self

    def fail(self) -> None:
        for job in self.running():
            if any(self.failed(node) for node in job.held):
                if self.site.when_node_fails == "lost":
                    job.finish, job.lost = self.now, True
                else:
                    job.start = -1
                    self.queue.append(job)

    def let_come(self) -> None:
        """Jobs enter the queue; some of them after others, or when a reservation begins."""
        for job in self.jobs:
            if job.eligible < 0 and not job.never:
                time = self.ready(job)
                if time is not None and time <= self.now:
                    job.eligible = self.now
                elif time is not None:
                    self.times.add(time)
            waits = job.eligible >= 0 and job.start < 0 and job not in self.queue
            if waits and self.may_begin(job):
                self.queue.append(job)

    def may_begin(self, job: PlainJob) -> bool:
        entry = job.values["reservation"]
        return entry < 0 or self.site.calendar[entry].start <= self.now

    def ready(self, job: PlainJob) -> int | None:
        """When a job is submitted and all that it waits for has ended; None where that is open."""
        others = [self.jobs[k] for k in job.after]
        if job.values["after_ok"] and any(
            other.finish >= 0 and (other.lost or other.values["failed"]) for other in others
        ):
            job.never = True
            return None
        if any(other.finish < 0 for other in others):
            return None
        if not others:
            return job.arrival
        end = max(other.finish for other in others)
        think = job.values["think_s"]
        return end + think if think >= 0 else max(end, job.arrival)

    # One pass.

    def score(self, job: PlainJob) -> float:
        return {"fcfs": 0.0, "saf": float(job.limit * job.demand[0]), "sjf": float(job.limit)}[
            self.order
        ]

    def schedule(self) -> None:
        """One pass over the queue."""
        self.claims: list[tuple[int, int, PlainJob, Held]] = [
            (self.now, max(job.start + job.limit, self.now + 1), job, job.held)
            for job in self.running()
        ]
        self.closed: set[int] = set()
        overdue = [
            job for job in self.queue if self.max_wait and self.now - job.eligible > self.max_wait
        ]

        def place(job: PlainJob) -> tuple:
            if job in overdue:
                return (0, job.eligible, job.number)
            tier = self.site.partitions[job.partition].tier
            return (1, -tier, self.score(job), job.eligible, job.number)

        blocked = set()
        for job in sorted(self.queue, key=place):
            if not self.within_limits(job):
                continue
            held = self.fit(job, self.now)
            if held is not None:
                if self.within_limits(job, held):
                    self.begin(job, held)
                continue
            first = job.partition not in blocked
            books = self.backfilling == "conservative" or (self.backfilling == "easy" and first)
            if job in overdue or books:
                time, held = self.earliest(job)
                if held is not None:
                    self.claims.append((time, time + job.limit, job, held))
                    if job not in overdue:
                        blocked.add(job.partition)
            elif self.backfilling == "strict" and self.earliest(job)[1] is not None:
                self.closed |= set(self.nodes(job))

    def begin(self, job: PlainJob, held: Held) -> None:
        job.start, job.held = self.now, held
        self.queue.remove(job)
        self.times.add(self.now + job.run)
        self.claims.append((self.now, self.now + job.limit, job, held))

    def free(self, node: int, second: int) -> list[int]:
        left = list(self.units[node])
        for begin, end, job, held in self.claims:
            if node in held and begin <= second < end:
                taken = self.takes(job, node, held[node])
                left = [there - part for there, part in zip(left, taken, strict=True)]
        return left

    def earliest(self, job: PlainJob) -> tuple[int, Held | None]:
        """When a job fits first after now, as far as anything is known to change."""
        changes = [end for _, end, _, _ in self.claims]
        changes += [one.end for one in self.site.calendar if one.kind != "failure"]
        for time in range(self.now + 1, max(changes, default=self.now) + 1):
            held = self.fit(job, time)
            if held is not None:
                return time, held
        return -1, None

    def fit(self, job: PlainJob, time: int) -> Held | None:
        """The nodes that a job gets if it starts at a time, and delays nobody; None if none."""
        end, entry = time + job.limit, job.values["reservation"]
        if entry >= 0 and time >= self.site.calendar[entry].end:
            return None
        can = {}
        for node in self.nodes(job):
            seconds = range(time, end)
            closed = self.failed(node) or (time == self.now and node in self.closed)
            if closed or any(self.kept_off(job, node, second) for second in seconds):
                continue
            most = min(self.can(job, node, self.free(node, second)) for second in seconds)
            if most > 0:
                can[node] = most
        free = {node: self.free(node, time)[0] for node in can}
        return self.chosen(job, can, free)

    def chosen(self, job: PlainJob, can: Held, free: Held) -> Held | None:
        """Which nodes a job gets of those on which it can have so many processors."""
        least, most = self.count_of_nodes(job)
        size, best = job.demand[0], self.site.placement != "order"
        if sum(can.values()) < size or len(can) < least:
            return None

        def tight(node: int) -> tuple:
            return (self.site.node_weights[node], free[node])

        if self.site.placement == "consecutive" and (
            held := self.in_runs(can, free, size, least, most)
        ):
            return held
        share = -(-size // least)
        equal = [node for node in can if can[node] >= share]
        if len(equal) >= least:
            if best:
                equal.sort(key=tight)  # equals stay in order
            parts = [size // least + (k < size % least) for k in range(least)]
            return dict(zip(equal, parts, strict=False))
        orders = [] if best else [list(can)]
        for nodes in [*orders, sorted(can, key=lambda node: -can[node])]:
            left, held = size, {}
            for node in nodes:
                if not left or len(held) == most:
                    break
                part = min(can[node], left - max(least - len(held) - 1, 0))
                rest = [n for n in nodes if n not in held and can[n] >= left]
                if nodes is not (orders[0] if orders else None) and part == left:
                    node = min(rest, key=tight)
                held[node] = part
                left -= part
            if not left and len(held) >= least:
                return held
        return None

    def in_runs(self, can: Held, free: Held, size: int, least: int, most: int) -> Held | None:
        """Nodes in runs of consecutive ones, as Slurm chooses them."""
        offers = {node: free[node] if can[node] == size else can[node] for node in can}
        if most == 1:
            offers = {node: units for node, units in offers.items() if units >= size}
        while len(offers) >= least:
            if held := self.in_runs_of(offers, size, least, most):
                return held
            fewest = min(offers.values())
            offers = {node: units for node, units in offers.items() if units > fewest}
        return None

    def in_runs_of(self, offers: Held, left: int, least: int, most: int) -> Held | None:
        weight = self.site.node_weights
        runs: list[list[int]] = []
        for node in offers:
            last = runs[-1][-1] if runs else None
            if last is not None and node == last + 1 and weight[node] == weight[last]:
                runs[-1].append(node)
            else:
                runs.append([node])
        held: Held = {}
        while runs and len(held) < most:
            best, known = runs[0], (sum(offers[node] for node in runs[0]), False)
            for place, run in enumerate(runs):
                units = sum(offers[node] for node in run)
                enough = units >= left and len(run) >= least - len(held)
                closer = units < known[0] or not known[1] if enough else units > known[0]
                lighter = weight[run[0]] < weight[best[0]]
                if place == 0 or lighter or (weight[run[0]] == weight[best[0]] and closer):
                    best, known = run, (units, enough)
            runs.remove(best)
            fitting = [node for node in best if offers[node] >= left]
            if fitting and least - len(held) <= 1:
                best = [min(fitting, key=lambda node: offers[node])]
            for node in best:
                if left and len(held) < most - (offers[node] < left):
                    held[node] = min(offers[node], left - max(least - len(held) - 1, 0))
                    left -= held[node]
            if not left and len(held) >= least:
                return held
        return None
