"""Where jobs come from: graphs with measured durations, and generated ones."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import require_ranges
from cluster_env.core.errors import InputError
from cluster_env.core.graphs import MOST_STAGES, Stages, graph_jobs
from cluster_env.core.jobs import LARGEST, JobSet
from cluster_env.core.registry import Registry, unknown
from cluster_env.core.spec import WorkloadSpec
from cluster_env.worlds.graphs.state import DRAW, GRAPH
from cluster_env.worlds.graphs.tables import read_library
from cluster_env.worlds.graphs.workflows import read_workflows

SHAPES = ("layered", "fork_join", "chain")


@dataclass(frozen=True)
class _Arrivals:
    """How jobs of either workload arrive.

    Attributes:
        jobs: number of jobs.
        gap_s: mean seconds between two arrivals, which come by a Poisson process.
        burst: jobs that arrive at once; the bursts come so much more rarely.
    """

    jobs: int = 200
    gap_s: float = 25.0
    burst: int = 1

    def __post_init__(self) -> None:
        require_ranges(self, jobs=(1, 1_000_000), gap_s=(1e-6, 1e6), burst=(1, 10_000))

    def draw_arrivals(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Milliseconds of the arrivals, int64 ``(jobs,)``; the first is at 0."""
        bursts = -(-self.jobs // self.burst)
        gaps = rng.exponential(1000.0 * self.gap_s * self.burst, bursts)
        times = np.concatenate([[0.0], np.cumsum(gaps[1:])])
        if times[-1] >= LARGEST:
            raise InputError(f"{self.jobs:,} jobs take longer than the clock can count")
        return np.repeat(np.ceil(times), self.burst)[: self.jobs].astype(np.int64)

    def draw_seeds(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Seed and number of the draws of each job, int64 ``(jobs, 2)``."""
        seed = np.full(self.jobs, rng.integers(2**31))
        return np.stack([seed, np.arange(self.jobs)], axis=1)


@dataclass(frozen=True)
class MeasuredWorkload(_Arrivals):
    """Graphs of the world's file of measured durations, each as likely as the others.

    Attributes:
        smallest: smallest size of graphs that are drawn, as their names have it: 2 in ``2g/7``.
        largest: largest size of graphs.
    """

    durations: str = ""
    smallest: int = 0
    largest: int = 1_000_000

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset.

        Raises:
            InputError: if the file cannot be read, or has no graphs of such sizes.
        """
        if not self.durations:
            raise InputError(
                "jobs with measured durations need a file of them; set world.durations to its path"
            )
        library = read_library(self.durations)
        size = np.array([int(name.split("/")[0].removesuffix("g")) for name in library.names])
        chosen = np.flatnonzero((size >= self.smallest) & (size <= self.largest))
        if not chosen.size:
            raise InputError(
                f"{self.durations} has no graph of size {self.smallest} to {self.largest}"
            )
        arrival = self.draw_arrivals(rng)
        graph = rng.choice(chosen, self.jobs)
        attributes = {GRAPH: graph, DRAW: self.draw_seeds(rng)}
        return graph_jobs(arrival, library.stages.of(graph), attributes=attributes)


@dataclass(frozen=True)
class WorkflowWorkload(_Arrivals):
    """Workflows in WfFormat, each as likely as the others; see `workflows`.

    Attributes:
        path: file of one, or folder of some.
    """

    shape: ClassVar[str] = "workflow"

    path: str = ""

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset.

        Raises:
            InputError: if there are no workflows, or one cannot be read.
        """
        if not self.path:
            raise InputError("workflows come from files; set workload.path to one, or to a folder")
        every = read_workflows(self.path)
        arrival = self.draw_arrivals(rng)
        drawn = rng.integers(len(every.tasks), size=self.jobs)
        return graph_jobs(arrival, every.of(drawn), attributes={DRAW: self.draw_seeds(rng)})


@dataclass(frozen=True)
class GeneratedWorkload(_Arrivals):
    """Graphs that are generated.

    Sizes are drawn as those of jobs at Alibaba and of TPC-H's queries look: most stages have few
    tasks and few have many, so that logarithms of tasks and times are normal.

    Attributes:
        shape: ``layered``: stages in layers, each with one to three parents in the layer before;
            ``fork_join``: layers of one stage and of several in turn; ``chain``: one behind the
            other; ``mixed``: each of the three is as likely.
        fewest: fewest stages of a job.
        most: most stages of a job.
        tasks: median number of tasks of a stage.
        task_s: median seconds of a task.
        variety: standard deviation of the logarithms of both.
        most_tasks: most tasks of a stage.
    """

    shape: str = "mixed"
    fewest: int = 2
    most: int = 12
    tasks: float = 8.0
    task_s: float = 4.0
    variety: float = 1.0
    most_tasks: int = 400

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape not in (*SHAPES, "mixed"):
            raise unknown("shape", self.shape, (*SHAPES, "mixed"))
        require_ranges(
            self,
            most=(1, MOST_STAGES),
            fewest=(1, self.most),
            tasks=(1, 1_000_000),
            task_s=(0.001, 1_000_000),
            variety=(0, 1_000_000),
            most_tasks=(1, 1_000_000),
        )

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        arrival = self.draw_arrivals(rng)
        size = (self.jobs, self.most)
        count = rng.integers(self.fewest, self.most, self.jobs, endpoint=True)
        present = np.arange(self.most) < count[:, None]
        tasks = np.rint(self.tasks * np.exp(self.variety * rng.standard_normal(size)))
        tasks = np.where(present, np.clip(tasks, 1, self.most_tasks), 0).astype(np.int64)
        spread = np.exp(self.variety / 2 * rng.standard_normal(size))
        time = np.where(present, np.clip(np.rint(1000.0 * self.task_s * spread), 1, 1e8), 0.0)
        shape = rng.integers(len(SHAPES), size=self.jobs)
        if self.shape != "mixed":
            shape[:] = SHAPES.index(self.shape)
        parents = np.zeros(size, np.int64)
        for job in range(self.jobs):
            _PARENTS[SHAPES[shape[job]]](parents[job, : count[job]], rng)
        stages = Stages(tasks, time, parents)
        return graph_jobs(arrival, stages, attributes={DRAW: self.draw_seeds(rng)})


def _layered(parents: NDArray[np.int64], rng: np.random.Generator) -> None:
    """Layers of one to three stages, each with some parents in the layer before."""
    above, first = range(0), 0
    while first < parents.size:
        layer = range(first, min(first + int(rng.integers(1, 4)), parents.size))
        for stage in layer if above else ():
            count = int(rng.integers(1, min(3, len(above)) + 1))
            chosen = rng.choice(np.array(above), count, replace=False)
            parents[stage] = np.bitwise_or.reduce(np.int64(1) << chosen)
        above, first = layer, layer.stop


def _fork_join(parents: NDArray[np.int64], rng: np.random.Generator) -> None:
    """One stage, several side by side, one that waits for all of them, and so on."""
    above, first, forks = range(0), 0, False
    while first < parents.size:
        width = int(rng.integers(2, 5)) if forks else 1
        layer = range(first, min(first + width, parents.size))
        parents[layer.start : layer.stop] = sum(1 << stage for stage in above)
        above, first, forks = layer, layer.stop, not forks


def _chain(parents: NDArray[np.int64], rng: np.random.Generator) -> None:
    """Each stage waits for the one before."""
    parents[1:] = np.int64(1) << np.arange(parents.size - 1)


_PARENTS = {"layered": _layered, "fork_join": _fork_join, "chain": _chain}

SHIFTS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "none": ({"gap_s": 25.0}, {"gap_s": 11.0}),
    "bursts": ({"gap_s": 25.0, "burst": 8}, {"gap_s": 11.0, "burst": 8}),
    "sizes": ({"gap_s": 7.0, "largest": 10}, {"gap_s": 2.8, "tasks": 2.0}),
    "shape": ({"gap_s": 12.0, "shape": "chain"}, {"gap_s": 11.0, "shape": "chain"}),
}
"""Options of measured and of generated graphs after a shift: jobs come in bursts, all are small, or
all are generated chains. Work is about 0.7 of what 50 executors can do, and 0.76 of it where all
graphs are generated."""


@dataclass(frozen=True)
class ShiftedWorkload:
    """Jobs after a shift, for what adapts to it.

    Attributes:
        shift: one of `SHIFTS`, or ``any``: each jobset has one of them.
        jobs: number of jobs.
        durations: file of measured graphs; without one all graphs are generated.
    """

    shift: str = "any"
    jobs: int = 100
    durations: str = ""

    def __post_init__(self) -> None:
        if self.shift not in (*SHIFTS, "any"):
            raise unknown("shift", self.shift, (*SHIFTS, "any"))
        self.after("none")

    def after(self, shift: str) -> MeasuredWorkload | GeneratedWorkload:
        """The jobs after one shift."""
        options = SHIFTS[shift][not self.durations]
        if self.durations and "shape" not in options:
            return MeasuredWorkload(jobs=self.jobs, durations=self.durations, **options)
        return GeneratedWorkload(jobs=self.jobs, **options)

    def sample(self, rng: np.random.Generator) -> JobSet:
        """Draws one jobset; the same generator state gives the same jobset."""
        shift = self.shift
        if shift == "any":
            shift = [*SHIFTS][rng.integers(len(SHIFTS))]
        jobset = self.after(shift).sample(rng)
        # Measured or not, all have the same attributes, because a simulator loads several of them.
        no_graph = np.full(self.jobs, -1)
        return replace(jobset, attributes={GRAPH: no_graph, **jobset.attributes})


WORKLOADS: Registry[WorkloadSpec] = Registry("workload")


def _file(world: Any) -> dict[str, Any]:
    return {"durations": world.durations}


WORKLOADS.register("generated")(WorkloadSpec(GeneratedWorkload))
WORKLOADS.register("measured")(WorkloadSpec(MeasuredWorkload, _file))
WORKLOADS.register("shifted")(WorkloadSpec(ShiftedWorkload, _file))
WORKLOADS.register("workflows")(WorkloadSpec(WorkflowWorkload, own=("path",)))
