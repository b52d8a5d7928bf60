"""Where consumers and absences come from: clustered populations that drift."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_option_types, require_ranges
from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from cluster_env.core.spec import WorkloadSpec
from cluster_env.worlds.panda.consumers import ANYWHERE, NEVER, ONE_RACK, TOLERANCE, Consumers
from cluster_env.worlds.panda.nodes import ANY_CORE, Nodes


@dataclass(frozen=True)
class Supply:
    """How nodes come and go: each is there for a while, then away for a while, again and again.

    Both times are exponential; nothing leaves if ``stays`` is 0. Departures follow no consumer, so
    that they are the same under every policy.

    Attributes:
        stays: mean number of steps for which a node is available; 0: always.
        away: mean number of steps until a node that left returns.
        announced: share of the departures of nodes that are announced; the others are sudden.
        notice: steps from the announcement of a departure to the departure.
    """

    stays: float = 0.0
    away: float = 50.0
    announced: float = 0.5
    notice: int = 20

    def __post_init__(self) -> None:
        require_option_types(self)
        if not (0 <= self.stays < 1e9 and 1 <= self.away < 1e9 and 0 <= self.notice < 10**9):
            raise InputError(
                f"stays and notice must be 0 or more, and away 1 or more, but {self.stays:g}, "
                f"{self.notice} and {self.away:g} were given"
            )
        if not 0 <= self.announced <= 1:
            raise InputError(f"announced must be 0 to 1, but {self.announced:g} was given")

    @property
    def share(self) -> float:
        """Share of the time that a node is there."""
        return self.stays / (self.stays + self.away) if self.stays else 1.0

    def sample(self, rng: np.random.Generator, num_nodes: int, until: int) -> NDArray[np.int32]:
        """Draws absences that begin before a clock, see `Consumers.away`."""
        rows = []
        for node in range(num_nodes if self.stays else 0):
            clock = 0
            while True:
                # Each time is one step more than whole steps of an exponential one.
                leaves = clock + 1 + int(rng.exponential(self.stays))
                returns = leaves + 1 + int(rng.exponential(self.away))
                # A notice begins no sooner than the node is there; a sudden departure has none.
                has_notice = rng.random() < self.announced
                notice = max(leaves - self.notice, clock) if has_notice else leaves
                if leaves >= until:
                    break
                rows.append((node, notice, leaves, min(returns, NEVER)))
                clock = returns
        return np.array(rows, np.int32).reshape(-1, 4)


@dataclass(frozen=True)
class ClusteredWorkload:
    """Consumers of several classes, whose mix may drift while they arrive.

    The classes are drawn anew from the seed of the population, which is part of the workload, so
    that all jobsets have the same ones. A class has a centre (cores, memory for a core, run time),
    around which its consumers are log-normal, a core type and a topology. Arrivals are uniform in
    the window.

    Classes may be tenants whose jobs are alike but for their memory (``alike``), so that nothing
    else shows whose a consumer is.

    Attributes:
        nodes: of the cloud.
        load: mean work of the consumers over what all available nodes could do in the window; 0.7
            is 70 %.
        window: number of steps in which consumers may arrive.
        classes: number of classes of consumers.
        spread: standard deviation of the logarithms of cores, memory and run time within a class.
        shortest: median run time of the class with the shortest runs, in steps at speed 1.
        longest: median run time of the class with the longest runs, in steps at speed 1.
        widest: median number of cores of the widest class, as a multiple of the largest node's
            cores.
        picky: share of the classes that require a core type.
        alike: whether classes differ in memory alone, the first one with the least. All consumers
            then have the widest number of cores and the same run time, and take any cores anywhere;
            ``population``, ``picky`` and ``own_classes`` have no effect.
        memory_bound: whether memory grows up to what the nodes with the most memory for a core
            have, so that the classes with more than the other nodes' have only those to run on.
            Requires ``alike``.
        drift: how far the mix of classes changes over the window: 0: not at all; 1: each class is
            common at some time and absent at another.
        supply: how nodes come and go.
        feedback: share of the consumers that report their satisfaction, for the objective
            ``feedback(16)``; 0: none. The multiple of its expected time that a consumer tolerates
            is log-normal around 2 with a deviation of 0.5, unless ``tolerances`` are given.
        tolerances: the multiple that all consumers of a class tolerate, one for each class.
        population: seed from which the classes of consumers are drawn.
        own_classes: whether each jobset draws classes of its own, so that unseen jobsets come from
            unseen populations. ``population`` then has no effect.
    """

    nodes: Nodes = field(default_factory=Nodes)
    load: float = 0.7
    window: int = 400
    classes: int = 4
    spread: float = 0.15
    shortest: int = 8
    longest: int = 40
    widest: float = 1.0
    picky: float = 0.25
    alike: bool = False
    memory_bound: bool = False
    drift: float = 0.0
    supply: Supply = field(default_factory=Supply)
    feedback: float = 0.0
    tolerances: tuple[float, ...] = ()
    population: int = 0
    own_classes: bool = False

    def __post_init__(self) -> None:
        require_option_types(self)
        require_ranges(
            self,
            load=(1e-6, 100),
            window=(1, 10**7),
            classes=(1, 64),
            spread=(0, 2),
            shortest=(1, 10**6),
            longest=(self.shortest, 10**6),
            widest=(0.01, 4),
            picky=(0, 1),
            drift=(0, 1),
            feedback=(0, 1),
            population=(0, 2**31),
        )
        if self.memory_bound and not self.alike:
            raise InputError(
                "memory_bound requires alike: consumers that need several nodes might find none "
                "with enough memory"
            )
        if self.tolerances and not (
            len(self.tolerances) == self.classes and all(0 < one <= 1e4 for one in self.tolerances)
        ):
            raise InputError(
                f"tolerances must be a number above 0, up to 10,000, for each of the "
                f"{self.classes} classes, but {list(self.tolerances)} was given"
            )

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """Of each class: cores, memory for a core, run time, core type and topology.

        float64 ``(classes, 5)``. Sizes and run times are spaced evenly on a logarithmic scale and
        dealt out at random, so that classes stay apart.
        """
        rng, n = np.random.default_rng(self.population), self.classes
        widest = max(self.widest * max(self.nodes.cores), 1.0)
        most = 0.75 * self._memory_for_a_core
        if self.alike:
            run_time = (self.shortest * self.longest) ** 0.5
            centres = np.tile([widest, 0.0, run_time, ANY_CORE, ANYWHERE], (n, 1))
            centres[:, 1] = np.geomspace(most / 16, most, n)
            return centres
        cores = rng.permutation(np.geomspace(1, widest, n) if n > 1 else [widest])
        run = rng.permutation(np.geomspace(self.shortest, self.longest, n))
        memory = rng.uniform(0.5, most, n)
        core_type = np.full(n, float(ANY_CORE))
        picky = rng.permutation(n)[: round(self.picky * n)]
        core_type[picky] = rng.choice(self.nodes.core_type, picky.size)
        topology = rng.integers(0, ONE_RACK, n, endpoint=True)
        return np.stack([cores, memory, run, core_type, topology], axis=1)

    @property
    def arrival_rate(self) -> float:
        """Mean number of arrivals in a step."""
        cores, _, run, _, _ = self.centres.T
        work = float((cores * run).mean()) * float(np.exp(self.spread**2))
        return self.load * self.nodes.capacity * self.supply.share / work

    def mix(self, when: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability of each class at a time of the window, from 0 to 1.

        float64 ``(times, classes)``; each class has its turn, and the mean over the window is the
        same for all.
        """
        # A single class is there all the time; its wave alone would be 0 over 0 at its lowest.
        drift = self.drift if self.classes > 1 else 0.0
        phase = np.arange(self.classes) / self.classes
        waves = 1 + drift * np.cos(2 * np.pi * (when[:, None] - phase))
        return np.asarray(waves / waves.sum(axis=1, keepdims=True), np.float64)

    def sample(self, rng: np.random.Generator) -> Consumers:
        """Draws one jobset; the same generator state gives the same jobset."""
        if self.own_classes:
            one = replace(self, own_classes=False, population=int(rng.integers(2**31)))
            return one.sample(rng)
        # When they arrive, and of which class each is; the mix depends on the time.
        count = int(rng.poisson(self.arrival_rate * self.window))
        arrival = np.sort(rng.integers(0, self.window, count))
        chance = self.mix(arrival / self.window).cumsum(axis=1)
        job_class = (rng.random((count, 1)) > chance).sum(axis=1).clip(max=self.classes - 1)
        # What they ask for: around the centre of the class, but never more than there is.
        centre = self.centres[job_class]
        noise = np.exp(self.spread * rng.standard_normal((count, 3)))
        if self.alike:
            # Of cores and run time: clustering would take a few whole numbers for classes.
            noise[:, [0, 2]] = 1.0
        cores = np.rint(centre[:, 0] * noise[:, 0]).clip(1, self._most_cores(centre[:, 3]))
        memory = np.rint(centre[:, 1] * cores * noise[:, 1])
        memory = memory.clip(0, 0.9 * self._memory_for_a_core * cores).astype(np.int64)
        run = np.rint(centre[:, 2] * noise[:, 2]).clip(1)
        # Nodes come and go for longer than consumers arrive: these are not done by then.
        away = self.supply.sample(rng, self.nodes.num_nodes, 4 * self.window)
        tolerance = {TOLERANCE: self._tolerance(rng, job_class)} if self.feedback else {}
        return Consumers.with_supply(
            *(arrival, run, cores),
            away=away,
            window=self.window,
            job_class=job_class,
            **tolerance,
            memory=memory,
            core_type=centre[:, 3].astype(np.int64),
            topology=centre[:, 4].astype(np.int64),
        )

    def _tolerance(
        self, rng: np.random.Generator, job_class: NDArray[np.integer[Any]]
    ) -> NDArray[np.int64]:
        """In percent; 0 for those that say nothing. Drawn last: all else is as without it."""
        tolerance = 200.0 * np.exp(0.5 * rng.standard_normal(job_class.size))
        if self.tolerances:
            tolerance = 100.0 * np.array(self.tolerances)[job_class]
        tolerance = np.rint(tolerance).clip(1, 10**6)
        return np.where(rng.random(job_class.size) < self.feedback, tolerance, 0).astype(np.int64)

    @property
    def _memory_for_a_core(self) -> float:
        """The least of all types, so that all nodes have enough; if memory-bound, the most."""
        each = np.divide(self.nodes.memory, self.nodes.cores)
        return float(each.max() if self.memory_bound else each.min())

    def _most_cores(self, core_type: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cores of a quarter of the usable nodes, at most four of them, for each core type."""
        most = np.empty(core_type.size)
        for kind in np.unique(core_type):
            usable = (self.nodes.column("core_type") == kind) | (kind < 0)
            cores = np.sort(self.nodes.column("cores")[usable])[::-1]
            most[core_type == kind] = cores[: max(1, min(4, cores.size // 4))].sum()
        return most


def _nodes(world: Any) -> dict[str, Any]:
    return {"nodes": world.nodes}


WORKLOADS: Registry[WorkloadSpec] = Registry("workload")
WORKLOADS.register("clustered")(WorkloadSpec(ClusteredWorkload, _nodes))
