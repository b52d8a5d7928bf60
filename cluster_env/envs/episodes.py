"""The episodes that several environments play, one after the other in each place."""

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.world import Simulator, State, World
from cluster_env.envs.setup import Setup
from cluster_env.workloads import Workload, sample_jobsets

_AHEAD = 4  # episodes of each place that are loaded at once
_MOST_EMPTY = 10_000  # jobsets without a job in a row, before a workload is refused


def require_one_agent(simulator: Simulator, num_episodes: int) -> None:
    """Makes sure that each episode has one row.

    Raises:
        InputError: if several agents decide in one.
    """
    if simulator.num_rows != num_episodes:
        raise InputError(
            "several agents decide in an episode of this world, but the environment has one; take "
            "an environment of several agents, or the world's simulator"
        )


def require_jobs(world: World, jobset: JobSet) -> None:
    """Makes sure that a jobset which a user gives has a job, and that its jobs can run.

    Raises:
        InputError: if it has none, or one cannot run in this world.
    """
    if not jobset.num_jobs:
        raise InputError("an episode needs a job, but the given jobset has none")
    world.check(jobset)


class JobsetStream:
    """Draws the training jobsets ``first``, ``first + step``, ... of a run, without end.

    Jobsets without a job are left out: in them there is nothing to decide.
    """

    def __init__(self, workload: Workload, run_seed: int, first: int = 0, step: int = 1) -> None:
        self._workload = workload
        self._run_seed = run_seed
        self._index = first
        self._step = step

    def draw(self) -> JobSet:
        """Draws the next one that has a job.

        Raises:
            InputError: if the workload draws none for too long.
        """
        for _ in range(_MOST_EMPTY):
            index = self._index
            self._index += self._step
            [jobset] = sample_jobsets(self._workload, self._run_seed, Split.TRAIN, [index])
            if jobset.num_jobs:
                return jobset
        raise InputError(
            f"the workload drew {_MOST_EMPTY:,} jobsets without a job; let more jobs arrive, or "
            f"make the window longer"
        )


class RunningEpisodes:
    """Keeps one episode going in each of several places of one simulator.

    The simulator holds the next few episodes of every place, so that most of them begin without
    loading anything. When one place has played all of its own, the next ones of all places are
    loaded, and the states of episodes under way are carried over.
    """

    def __init__(self, setup: Setup, num_places: int) -> None:
        self.simulator = setup.task.world.simulator()
        self._spare = setup.task.world.simulator()
        self._world = setup.task.world
        self.rows = np.zeros(num_places, np.int32)  # (num_places,), episodes of the simulator
        self._objective = setup.task.objective
        self._streams: list[JobsetStream | None] = [None] * num_places
        self._coming: list[deque[JobSet]] = [deque() for _ in range(num_places)]
        self._playing: list[JobSet | None] = [None] * num_places
        self._loaded = np.zeros(num_places, np.int32)  # coming episodes that are loaded

    @property
    def states(self) -> State:
        """The states of all places, ``(num_places, state_size)``: a copy."""
        return self.simulator.states[self.rows]

    def draw_from(self, place: int, stream: JobsetStream) -> None:
        """Lets the coming episodes of a place draw their jobsets from a stream."""
        self._streams[place] = stream
        self._coming[place].clear()

    def begin(self, places: Iterable[int], given: Sequence[JobSet | None] | None = None) -> None:
        """Ends the episodes of some places and begins the next ones there, or those of jobsets.

        ``given`` has an entry for each place of the simulator, None for the next of its stream.

        Raises:
            InputError: if a given jobset has no job, or one that cannot run on this cluster.
        """
        begun = np.zeros(self.rows.size, np.bool_)
        begun[list(places)] = True
        # A given jobset goes before those that the stream has drawn, and moves none of them.
        for place in np.flatnonzero(begun).tolist():
            jobset = given[place] if given is not None else None
            if jobset is not None:
                require_jobs(self._world, jobset)
                self._coming[place].appendleft(jobset)
        self._load(begun)

    def advance(self, places: NDArray[np.intp]) -> None:
        """Begins the next episode in some places, ``(m,)``.

        Raises:
            InputError: if a job cannot run on this cluster.
        """
        # One place without a loaded episode is enough to load those of all.
        if np.any(self._loaded[places] == 0):
            begun = np.zeros(self.rows.size, np.bool_)
            begun[places] = True
            self._load(begun)
            return
        for place in places:
            self._playing[place] = self._coming[place].popleft()
        self.rows[places] += 1
        self._loaded[places] -= 1

    def _load(self, begun: NDArray[np.bool_]) -> None:
        """Loads the episodes of all places; only those that do not begin keep their state."""
        kept = np.flatnonzero(~begun)
        # Of each place, the episode that it plays and the next few.
        pool: list[JobSet] = []
        for place, (stream, coming) in enumerate(zip(self._streams, self._coming, strict=True)):
            assert stream is not None
            coming.extend(stream.draw() for _ in range(_AHEAD - len(coming)))
            if begun[place]:
                self._playing[place] = coming.popleft()
            playing = self._playing[place]
            assert playing is not None
            pool += [playing, *list(coming)[: _AHEAD - 1]]
        # Two simulators in turn: the one that is loaded takes over from the one that was playing.
        before, self.simulator, self._spare = self.simulator, self._spare, self.simulator
        self.simulator.load(pool, self._objective)
        require_one_agent(self.simulator, len(pool))
        rows = np.arange(self.rows.size, dtype=np.int32) * _AHEAD
        # Episodes under way go on where they were, in the first row of their place.
        if kept.size:
            self.simulator.take_over(before, self.rows[kept], rows[kept])
        self.rows[:] = rows
        self._loaded[:] = _AHEAD - 1
