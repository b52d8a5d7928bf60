"""A cluster for task graphs as a world: its decision process, its options, and its features."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.checks import (
    outputs,
    require_option_types,
    require_ranges,
    require_states,
)
from cluster_env.core.errors import InputError
from cluster_env.core.graphs import (
    MOST_STAGES,
    STAGE_PARENTS,
    STAGE_TASKS,
    STAGE_TIME,
    stages_of,
)
from cluster_env.core.jobs import LARGEST, JobSet
from cluster_env.core.world import Features
from cluster_env.worlds.graphs.features import Context, Item, describe, describe_stages
from cluster_env.worlds.graphs.simulator import GraphsSimulator
from cluster_env.worlds.graphs.state import GRAPH, MOST_EXECUTORS, Options, state_size
from cluster_env.worlds.graphs.tables import NO_LIBRARY, Library, read_library


@dataclass(frozen=True)
class Graphs:
    """Executors that run jobs which are graphs of stages (Decima; Mao et al., SIGCOMM 2019).

    A stage has tasks, each of which runs on one executor, and begins when its parents have ended.
    An executor that changes its job is on the way for `delay`. How long a task lasts depends on
    what its executor ran before, and on how many executors its job has; see `durations`.

    **Clock.** Whole milliseconds, from event to event: a job arrives, an executor comes to its job,
    a task ends. At one instant jobs arrive first; all else goes in the order in which it began.
    `cluster_env.worlds.graphs.events` says which executors are then to be assigned, in a round of
    decisions. A decision takes no time. Where several executors could go, the one with the lowest
    number does.

    **State.** int32, the columns `Header` and, for each item, `CandidateColumns` of
    `cluster_env.worlds.graphs.state`. Networks see the features `Item` and `Context` of
    `cluster_env.worlds.graphs.features`.

    **Action.** In two phases, as Decima's two heads. First one of the `candidates` is picked, a
    stage that can get executors: those of the executors' own job come first, then those of others
    by arrival. Then action k gives it k + 1 executors; where it can take one only, it gets that at
    once. The last action, void, shows the next candidates where there are more; else it ends the
    round, and who is left waits.

    **Mask.** Candidates that are there, or numbers that the picked stage can take; void, unless
    executors are being counted, or none are left to show and nothing else would ever happen. Other
    actions are the nearest that are allowed: too large a number is the largest, and void is a
    single executor for the first stage where there must be one.

    **Reward.** Minus what jobs cost until the next decision, by the objective: under
    ``completion_time`` minus the jobs that are here times the time, so at most 0. The undiscounted
    return of an episode is minus what the objective costs.

    **Episode.** It begins with the first arrival. It is *terminated* when all jobs have finished,
    and *truncated* at `max_time`.

    Attributes:
        executors: of the cluster.
        delay: milliseconds that an executor is on the way to another job.
        warmup: milliseconds by which the first task on a fresh executor is longer, where its
            duration was not measured.
        spread: share by which durations that jobs say are longer or shorter at random, uniformly.
        durations: file of graphs with measured durations, see `cluster_env.worlds.graphs.tables`,
            whose jobs draw from them; unset for jobs that say theirs.
        stages: most stages of a job.
        candidates: most stages that a state shows to be picked.
        nodes: most stages that it shows beside them, for the observation ``graph``.
        max_time: millisecond at which an episode is truncated.
    """

    kind: ClassVar[str] = "graphs"

    executors: int = 20
    delay: int = 2000
    warmup: int = 1000
    spread: float = 0.2
    durations: str = ""
    stages: int = 20
    candidates: int = 64
    nodes: int = 0
    max_time: int = LARGEST

    def __post_init__(self) -> None:
        require_option_types(self)
        require_ranges(
            self,
            executors=(1, MOST_EXECUTORS),
            delay=(0, LARGEST),
            warmup=(0, LARGEST),
            stages=(1, MOST_STAGES),
            candidates=(1, 4096),
            nodes=(0, 4096),
            max_time=(1, LARGEST),
        )
        if not 0 <= self.spread < 1:
            raise InputError(f"spread must be 0 or more, below 1, but {self.spread:g} was given")

    @cached_property
    def options(self) -> Options:
        """The options as compiled code reads them."""
        return Options(
            executors=int(self.executors),
            delay=int(self.delay),
            warmup=int(self.warmup),
            spread=float(self.spread),
            span=int(self.stages) + 1,
            candidates=int(self.candidates),
            items=self.num_actions - 1,
            nodes=int(self.nodes),
            max_time=int(self.max_time),
        )

    @property
    def library(self) -> Library:
        """The graphs of `durations`; without a file there are none.

        Raises:
            InputError: if there is no such file, or it holds something else.
        """
        return read_library(self.durations) if self.durations else NO_LIBRARY

    @cached_property
    def state_space(self) -> spaces.Box:
        """Whole numbers, see `cluster_env.worlds.graphs.state`."""
        size = state_size(self.num_actions - 1, self.nodes)
        return spaces.Box(-LARGEST, LARGEST, (size,), np.int32)

    @property
    def num_actions(self) -> int:
        """One for each candidate, or each number of executors, and void."""
        return max(self.candidates, self.executors) + 1

    @property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """See `cluster_env.worlds.graphs.features`."""
        return Item._fields, Context._fields

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job has stages, and durations.

        Raises:
            InputError: if one has none, or more than the world has room for.
        """
        tasks = stages_of(jobset).tasks
        most = int((tasks > 0).sum(axis=1).max(initial=0))
        if most > self.stages:
            raise InputError(
                f"a job has {most} stages, but the world has stages={self.stages}; set it higher"
            )
        graph = jobset.attributes.get(GRAPH)
        if graph is not None and (graph >= 0).any():
            count = len(self.library.names)
            if graph.max() >= count:
                raise InputError(
                    f"a job is graph {int(graph.max())} of a file of durations, but the world has "
                    f"{count}; set durations to that file"
                )

    def served(self, jobset: JobSet) -> JobSet:
        """The same jobs, with as many columns of stages as the world has."""
        found = stages_of(jobset)
        width = found.tasks.shape[1]
        if width == self.stages:
            return jobset
        wide = found.resized(self.stages)
        named = dict(zip((STAGE_TASKS, STAGE_TIME, STAGE_PARENTS), wide, strict=True))
        return replace(jobset, attributes={**jobset.attributes, **named})

    def simulator(self) -> GraphsSimulator:
        """A new simulator, with nothing loaded."""
        return GraphsSimulator(self)

    def features(self, states: NDArray[np.int32], out: Features | None = None) -> Features:
        """What a network sees; see `cluster_env.worlds.graphs.features`.

        Raises:
            InputError: for states or outputs of another shape or type.
        """
        require_states(states, self.state_space)
        count, num_items = states.shape[0], self.num_actions - 1
        features = Features(
            *outputs(
                out,
                ((count, num_items, len(Item._fields)), np.float32),
                ((count, len(Context._fields)), np.float32),
                ((count, self.num_actions), np.bool_),
            )
        )
        describe(self.options, states, features.context, features.allowed)
        describe_stages(self.options, states, 0, features.items)
        return features
