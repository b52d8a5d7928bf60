"""Many clouds side by side, each with many agents."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Pieces, Schedule, gather_attributes
from cluster_env.objectives import Objective
from cluster_env.worlds.panda.arrays import BY_NEED, Cloud, Episodes, Jobs
from cluster_env.worlds.panda.joining import joined_jobs, new_episodes
from cluster_env.worlds.panda.nodes import Nodes
from cluster_env.worlds.panda.planning import new_plan
from cluster_env.worlds.panda.play import CHOICES, ORDERS
from cluster_env.worlds.panda.step import PLAY, RESET, STEP, run_episodes

_NO_BITS, _NO_NEEDS = np.empty((0, 0), np.int8), np.empty((0, 0), np.float32)
_NO_REWARDS, _NO_KEYS = np.empty(0), np.empty(0, np.uint64)


class PandaSimulator:
    """The supervisor: it takes the actions of all agents, resolves collisions and lets time pass.

    A row is an agent, one for each consumer of each episode; the rows of an episode stand together
    in the order of arrival. An agent is active while its consumer waits. As long as somebody waits
    in an episode, a decision takes one step; else the clock goes on to the next arrival or loss.

    At one instant consumers finish, nodes return, are announced to leave and leave, consumers
    arrive, and then agents decide.

    The reward of a decision is minus what the consumer costs until its next one. A consumer that
    starts is charged for the whole run ahead, which its nodes decide; if it loses a node, its next
    decision is given back the rest. So returns are exactly minus the costs of the objective.

    Args:
        nodes: of the cloud.
        cloud: the same, and the rules, as compiled code reads them.
        reach: of the attention filter.
        state_size: of a state.
        check: raises `InputError` for a jobset that cannot run.
    """

    def __init__(
        self,
        nodes: Nodes,
        cloud: Cloud,
        reach: float,
        state_size: int,
        check: Callable[[JobSet], None],
    ) -> None:
        self._nodes, self._cloud, self._reach = nodes, cloud, reach
        self._state_size, self._check = state_size, check
        self._jobsets: tuple[JobSet, ...] = ()
        self._jobs: Jobs
        self._episodes: Episodes

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        """Takes the jobs of the next episodes and resets; see `Simulator.load`.

        Raises:
            InputError: as there, and for an objective that charges episodes and not consumers.
        """
        if not jobsets:
            raise InputError("at least one jobset is needed")
        if objective.busy_cost or objective.utilization_gain or objective.utility_gain:
            raise InputError(
                f"an agent is rewarded for its own consumer, but the objective '{objective.name}' "
                f"rewards whole episodes; take one of single jobs, such as slowdown"
            )
        for jobset in jobsets:
            self._check(jobset)
        self._jobsets = tuple(jobsets)
        self._jobs = joined_jobs(jobsets, objective, self._nodes, self._reach)
        each = np.repeat(np.arange(len(jobsets), dtype=np.int32), episodes_per_jobset)
        self._episodes = new_episodes(each, jobsets, self._cloud, self._state_size)
        self._held_before = np.empty(self.num_rows, np.int64)
        most = max(one.num_jobs for one in jobsets)
        self._plan = new_plan(self._nodes.num_nodes, most)
        self.reset()

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or those of the given rows, back to the beginning."""
        which = np.sort(self._first_rows() if rows is None else rows).astype(np.int32)
        self._run(RESET, which)

    @property
    def num_rows(self) -> int:
        """Number of agents: one for each consumer of each episode."""
        return int(self._episodes.episode.size)

    @property
    def episode(self) -> NDArray[np.int32]:
        """Index of each row's episode, int32 ``(num_rows,)``, never decreasing."""
        return self._episodes.episode

    @property
    def states(self) -> NDArray[np.int32]:
        """The states of all rows, int32 ``(num_rows, state_size)``: a view that changes.

        That of a row that is not active is the last one that it had.
        """
        return self._episodes.states

    @property
    def time(self) -> NDArray[np.int64]:
        """The clock of each row's episode in steps, int64 ``(num_rows,)``: a view that changes."""
        return self._episodes.time

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which rows are to decide, bool ``(num_rows,)``: a view; agents come and go."""
        return self._episodes.active

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Which rows were cut at `max_time`, bool ``(num_rows,)``: a view that changes."""
        return self._episodes.truncated

    @property
    def agents(self) -> NDArray[np.void]:
        """What has become of each row, ``(num_rows,)`` of `arrays.AGENT`: a view that changes."""
        return self._episodes.agent

    @property
    def nodes(self) -> NDArray[np.void]:
        """The nodes, ``(num_episodes, num_nodes)`` of `arrays.NODE`: a view that changes."""
        return self._episodes.node

    @property
    def observed(self) -> NDArray[np.int64]:
        """The nodes that each row sees, int64 ``(num_rows, observed)``, or -1: a view."""
        return self._episodes.shown

    def held(self, row: int) -> NDArray[np.int64]:
        """The nodes that a row holds, in the order in which it caught them."""
        return self._episodes.held[row, : self._episodes.agent[row]["held"]]

    def step(
        self,
        rows: NDArray[np.int32],
        actions: NDArray[Any],
        rewards: NDArray[np.float64],
        needs: NDArray[np.float32] | None = None,
    ) -> int:
        """Takes one decision of each agent; see `Simulator.step` and `Panda`.

        Args:
            rows: int32 ``(m,)``, rising: all active ones of each episode.
            actions: zeros and ones ``(m, observed + held + 1)``, where a number above 1 is a 1 that
                says how much the agent needs the node, if `needs` does not; or int32 ``(m,)``, for
                each agent the one bit that is 1.
            rewards: float64, of at least m elements, the first m of which are written.
            needs: float32 ``(m, observed)``, how much each agent needs each node that it sees,
                where collisions are resolved by need; of equal ones the first arrival goes first.
        """
        cloud = self._cloud
        if actions.ndim == 1:
            bits = np.zeros((rows.size, cloud.observed + cloud.held + 1), np.int8)
            bits[np.arange(rows.size), actions] = 1
        else:
            bits = (actions > 0).astype(np.int8)
        if needs is None and cloud.collision == BY_NEED:
            caught = actions[:, : cloud.observed] if actions.ndim > 1 else bits[:, : cloud.observed]
            needs = caught.astype(np.float32)
        return self._run(STEP, rows, bits, _NO_NEEDS if needs is None else needs, rewards)

    def play(
        self,
        rule: tuple[str, str],
        keys: NDArray[np.uint64] | None = None,
        weights: NDArray[np.floating[Any]] | None = None,
    ) -> None:
        """Plays all episodes to their ends; the states of rows are left as they are.

        Args:
            rule: how nodes are chosen and in which order consumers get their turn, one of `CHOICES`
                and one of `ORDERS`.
            keys: of random numbers, uint64 ``(num_rows,)``.
            weights: of a scorer's features, where nodes are `scored`; see `scoring.PAIR`.
        """
        choice, order = rule
        if weights is not None:
            self._plan.weights[:] = weights
        self._run(
            *(PLAY, self._first_rows(), _NO_BITS, _NO_NEEDS, _NO_REWARDS),
            *(CHOICES.index(choice), ORDERS.index(order) == 1),
            np.zeros(self.num_rows, np.uint64) if keys is None else keys,
        )

    def take_over(
        self, other: "PandaSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies episodes under way, those that the rows belong to; see `Simulator.take_over`."""
        mine, theirs = self._episodes, other._episodes
        pairs = {
            (int(theirs.episode[s]), int(mine.episode[t]))
            for s, t in zip(source, target, strict=True)
        }
        for there, here in pairs:
            before, now = theirs.of[there], mine.of[here]
            shift = now["first_event"] - before["first_event"]
            rows = [slice(at["row"], at["row"] + at["count"]) for at in (before, now)]
            runs = [slice(at["run"], at["run"] + before["num_runs"]) for at in (before, now)]
            for name in (
                *("time", "round", "coming", "num_waiting", "num_running", "num_done"),
                "num_runs",
            ):
                now[name] = before[name]
            now["active"], now["truncated"] = before["active"], before["truncated"]
            now["event"] = before["event"] + shift
            mine.node[here] = theirs.node[there]
            for name in (
                *("agent", "held", "shown", "waiting", "running"),
                *("active", "truncated", "time", "states"),
            ):
                getattr(mine, name)[rows[1]] = getattr(theirs, name)[rows[0]]
            for name in ("runs", "run_nodes"):
                getattr(mine, name)[runs[1]] = getattr(theirs, name)[runs[0]]

    def schedule(self) -> Schedule:
        """The consumers that have arrived in each episode, and what became of them.

        Pieces say how much of its work each node did for a consumer in core steps at speed 1, in
        proportion to what the node can do; work that was lost with a node is left out.
        """
        e, of = self._episodes, self._episodes.of
        episode = np.repeat(np.arange(of.size, dtype=np.int32), of["coming"])
        first = np.cumsum(of["coming"]) - of["coming"]
        job = (np.arange(episode.size) - first[episode]).astype(np.int32)
        agent = e.agent[of["row"][episode] + job]
        place = of["first"][episode] + job
        spec = self._jobs.of[place]
        jobset = of["jobset"][episode].astype(np.int32)
        classes = np.concatenate([one.job_class for one in self._jobsets])
        done = (agent["finish"] >= 0) & (agent["finish"] <= of["time"][episode])
        return Schedule(
            episode=episode,
            job=job,
            arrival=spec["arrival"].astype(np.int32),
            start=agent["start"].astype(np.int32),
            finish=np.where(done, agent["finish"], -1).astype(np.int32),
            duration=spec["duration"].astype(np.int32),
            demand=spec["cores"][:, None].astype(np.int32),
            end=of["time"].astype(np.int32),
            window=of["window"].astype(np.int32),
            jobset=of["jobset"].astype(np.int32),
            capacity=np.array([self._nodes.capacity], np.int32),
            job_class=classes[place],
            attributes=gather_attributes(self._jobsets, jobset, job),
            pieces=self._pieces(first),
        )

    def runs(self) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.int64]]:
        """All stretches that consumers ran, also those whose work was lost.

        Returns:
            Runs, ``(num_runs,)`` of `arrays.RUN`, which end at the clock at the latest; the nodes
            of each, int64 ``(num_runs, held)``, of which the first ``held`` count; and its episode,
            int64 ``(num_runs,)``.
        """
        e, of = self._episodes, self._episodes.of
        episode = np.repeat(np.arange(of.size), of["num_runs"])
        first = np.cumsum(of["num_runs"]) - of["num_runs"]
        place = of["run"][episode] + np.arange(episode.size) - first[episode]
        found = e.runs[place].copy()
        found["end"] = np.minimum(found["end"], of["time"][episode])
        return found, e.run_nodes[place], episode

    def _first_rows(self) -> NDArray[np.int32]:
        """The first row of each episode that has any, int32."""
        of = self._episodes.of
        return np.asarray(of["row"][of["count"] > 0], np.int32)

    def _run(
        self,
        mode: int,
        rows: NDArray[np.int32],
        bits: NDArray[np.int8] = _NO_BITS,
        needs: NDArray[np.float32] = _NO_NEEDS,
        rewards: NDArray[np.float64] = _NO_REWARDS,
        choice: int = 0,
        shortest: bool = False,
        keys: NDArray[np.uint64] = _NO_KEYS,
    ) -> int:
        found = run_episodes(
            *(self._cloud, self._jobs, self._episodes, mode, rows, bits, needs, rewards),
            *(self._held_before, choice, shortest, self._plan, keys),
        )
        return int(found)

    def _pieces(self, first: NDArray[np.int64]) -> Pieces:
        """One piece for each node of each run whose work counts.

        Args:
            first: int64 ``(num_episodes,)``, row of the schedule of each episode's first job.
        """
        runs, nodes, episode = self.runs()
        used = np.arange(nodes.shape[1]) < runs["held"][:, None]
        used &= ((runs["counts"] > 0) & (runs["end"] > runs["begin"]))[:, None]
        run, column = np.nonzero(used)
        work = np.where(used, self._nodes.work[nodes], 0)
        share = work[run, column] / work.sum(axis=1)[run]
        return Pieces(
            job=(first[episode[run]] + runs["consumer"][run]).astype(np.int32),
            begin=runs["begin"][run].astype(np.int32),
            end=runs["end"][run].astype(np.int32),
            units=(share * runs["work"][run])[:, None],
            node=nodes[run, column].astype(np.int32),
        )
