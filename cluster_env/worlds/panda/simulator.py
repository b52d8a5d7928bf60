"""Many clouds side by side, each with many agents."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.batch import Batch, BatchSimulator
from cluster_env.core.compiled import new_records
from cluster_env.core.errors import InputError
from cluster_env.core.schedule import Pieces, Schedule
from cluster_env.objectives import Objective
from cluster_env.worlds.panda.agents import AgentDecisions
from cluster_env.worlds.panda.allocation import CHOICES, ORDERS, Rule
from cluster_env.worlds.panda.consumers import (
    CORE_TYPE,
    MEMORY,
    NEVER,
    TOPOLOGY,
    absences,
    nearest_types,
    specification,
)
from cluster_env.worlds.panda.events import PLAY, RESET, RULE_STEP, STEP, run_episodes
from cluster_env.worlds.panda.features import PAIR
from cluster_env.worlds.panda.nodes import Nodes
from cluster_env.worlds.panda.state import (
    AGENT,
    ANNOUNCE,
    BY_NEED,
    CONSUMER,
    LEAVE,
    NODE,
    PROGRESS,
    RETURN,
    RUN,
    SPAN,
    Cloud,
    Episodes,
    Jobs,
    new_scratch,
    state_space,
)

_NO_BITS, _NO_NEEDS = np.empty((0, 0), np.int8), np.empty((0, 0), np.float32)
_NO_REWARDS = np.empty(0)


class PandaSimulator(BatchSimulator):
    """The supervisor: it takes the actions of all agents, resolves collisions and lets time pass.

    A row is an agent, one for each consumer of each episode; the rows of an episode stand together
    in the order of arrival. An agent is active while its consumer waits. `Panda` says what happens.

    The state of a row that is not active is the last one that it had.

    Attributes:
        agents: ``(num_rows,)`` of `state.AGENT`, what has become of each row; views, as all.
        nodes: ``(num_episodes, num_nodes)`` of `state.NODE`.
        observed: int64 ``(num_rows, observed)``, the nodes that each row sees, or -1.
    """

    agents: NDArray[np.void]
    nodes: NDArray[np.void]
    observed: NDArray[np.int64]

    def require(self, objective: Objective) -> None:
        """Refuses objectives that charge episodes and not consumers."""
        if objective.busy_cost or objective.utilization_gain or objective.utility_gain:
            raise InputError(
                f"an agent is rewarded for its own consumer, but the objective '{objective.name}' "
                f"rewards whole episodes; take one of single jobs, such as slowdown"
            )

    def allocate(self) -> None:
        """Makes room for the episodes of `batch`, and sets the views."""
        world, batch = self.world, self.batch
        events = [_events_of(absences(one)) for one in batch.jobsets]
        self._jobs: Jobs = _jobs_of(batch, events, world.nodes, world.reach)
        self._episodes: Episodes = _episodes_of(batch, events, world.cloud)
        self._held_before = np.empty(batch.num_places, np.int64)
        self._scratch = new_scratch(world.nodes.num_nodes, batch.most_jobs, len(PAIR))
        no_keys = np.zeros(batch.num_places, np.uint64)
        self._no_rule = Rule(0, 0, no_keys, np.zeros(len(PAIR)))
        self.episode, self.states = self._episodes.number, self._episodes.states
        self.time, self.active = self._episodes.time, self._episodes.active
        self.truncated, self.agents = self._episodes.truncated, self._episodes.agents
        self.nodes, self.observed = self._episodes.nodes, self._episodes.shown

    def held(self, row: int) -> NDArray[np.int64]:
        """The nodes that a row holds, in the order in which it caught them."""
        return self._episodes.held[row, : self.agents[row]["held"]]

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all episodes, or those of the given rows, back to the beginning."""
        first = self._first_rows() if rows is None else np.sort(rows).astype(np.int32)
        self._run(RESET, first)

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
                each agent the one bit that is 1, or for all of them `rule_action` of a rule that
                decides in their place.
            rewards: float64, of at least m elements, the first m of which are written.
            needs: float32 ``(m, observed)``, how much each agent needs each node that it sees,
                where collisions are resolved by need; of equal ones the first arrival goes first.

        Raises:
            InputError: if some agents leave their decision to a rule and others do not.
        """
        cloud = self.world.cloud
        # Every way to write actions becomes rows of bits, but for what is left to a rule.
        if actions.ndim > 1:
            bits = (actions > 0).astype(np.int8)
        elif actions.size and actions.min() < 0:
            return self._run(RULE_STEP, rows, rule=self._rule_of(actions), rewards=rewards)
        else:
            bits = np.zeros((rows.size, cloud.observed + cloud.held + 1), np.int8)
            bits[np.arange(rows.size), actions] = 1
        # Who says nothing else needs each node as much as the number in its action.
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

        The rule is how nodes are chosen and in which order consumers get their turn, one of
        `CHOICES` and one of `ORDERS`; nodes that are `scored` need weights of `features.PAIR`. Keys
        of random numbers are uint64 ``(num_rows,)``.
        """
        choice, order = CHOICES.index(rule[0]), ORDERS.index(rule[1])
        # What is not given keeps its place: compiled code has one form of arguments.
        played = self._no_rule._replace(choice=choice, order=order)
        if keys is not None:
            played = played._replace(keys=keys)
        if weights is not None:
            played = played._replace(weights=weights.astype(np.float64))
        self._run(PLAY, self._first_rows(), rule=played)

    @staticmethod
    def rule_action(rule: tuple[str, str]) -> int:
        """The action of agents that leave a decision to a rule, below 0; see `play`."""
        choice, order = CHOICES.index(rule[0]), ORDERS.index(rule[1])
        return -1 - (choice * len(ORDERS) + order)

    def take_over(
        self, other: "PandaSimulator", source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        """Copies episodes under way, those that the rows belong to; see `Simulator.take_over`."""
        # Several rows may name the same episode, which is copied once, with all of its rows.
        own, others = self._episodes, other._episodes
        pairs = np.unique([others.number[source], own.number[target]], axis=1)
        there, here = pairs.astype(np.int32)
        own.progress[here], own.nodes[here] = others.progress[there], others.nodes[there]
        by_row = ("agents", "held", "shown", "waiting", "running")
        self.batch.copy_places(
            *(other.batch, there, here),
            [
                (getattr(own, name), getattr(others, name))
                for name in (*by_row, "active", "truncated", "time", "states")
            ],
        )
        # Episodes of the same jobset have the same room for runs.
        for one, two in zip(own.spans[here], others.spans[there], strict=True):
            to, start, size = one["run"], two["run"], two["most_runs"]
            own.runs[to : to + size] = others.runs[start : start + size]
            own.run_nodes[to : to + size] = others.run_nodes[start : start + size]

    def schedule(self) -> Schedule:
        """The consumers that have arrived in each episode, and what became of them.

        Pieces say how much of its work each node did for a consumer in core steps at speed 1, in
        proportion to what the node can do; work that was lost with a node is left out.
        """
        # A run that is under way has a planned finish, which lies behind the clock.
        progress, finish = self._episodes.progress, self.agents["finish"]
        ended = (finish >= 0) & (finish <= progress["time"][self.episode])
        return self.batch.schedule(
            arrived=progress["num_arrived"],
            start=self.agents["start"],
            finish=np.where(ended, finish, -1),
            end=progress["time"],
            capacity=[self.world.nodes.capacity],
            pieces=self._pieces(),
        )

    def runs(self) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.int64]]:
        """All stretches that consumers ran, also those whose work was lost.

        Runs are ``(num_runs,)`` of `state.RUN`, which end at the clock at the latest; then come the
        nodes of each, int64 ``(num_runs, held)``, of which the first ``held`` count, and its
        episode, int64 ``(num_runs,)``.
        """
        episodes, progress = self._episodes, self._episodes.progress
        num_runs = progress["num_runs"]
        episode = np.repeat(np.arange(num_runs.size), num_runs)
        first = np.cumsum(num_runs) - num_runs
        place = episodes.spans["run"][episode] + np.arange(episode.size) - first[episode]
        runs = episodes.runs[place].copy()
        runs["end"] = np.minimum(runs["end"], progress["time"][episode])
        return runs, episodes.run_nodes[place], episode

    def _first_rows(self) -> NDArray[np.int32]:
        """The first row of each episode that has any, int32."""
        return self.batch.place[self.batch.num_jobs > 0].astype(np.int32)

    def _rule_of(self, actions: NDArray[Any]) -> Rule:
        if actions.min() != actions.max():
            raise InputError("a rule decides for all agents of all rows, or for none")
        choice, order = divmod(-1 - int(actions[0]), len(ORDERS))
        return self._no_rule._replace(choice=choice, order=order)

    def _run(
        self,
        mode: int,
        rows: NDArray[np.int32],
        bits: NDArray[np.int8] = _NO_BITS,
        needs: NDArray[np.float32] = _NO_NEEDS,
        rewards: NDArray[np.float64] = _NO_REWARDS,
        rule: Rule | None = None,
    ) -> int:
        decisions = AgentDecisions(rows, bits, needs, rewards, self._held_before)
        num_active = run_episodes(
            *(self.world.cloud, self._jobs, self._episodes, mode, decisions),
            *(rule or self._no_rule, self._scratch),
        )
        return int(num_active)

    def _pieces(self) -> Pieces:
        """One piece for each node of each run whose work counts."""
        runs, nodes, episode = self.runs()
        # Runs that were lost do not count, nor do those that begin as the episode ends.
        first = self.batch.first_rows(self._episodes.progress["num_arrived"])
        used = np.arange(nodes.shape[1]) < runs["held"][:, None]
        used &= ((runs["counts"] > 0) & (runs["end"] > runs["begin"]))[:, None]
        # Each node has its share of the run's work, by what it can do in a step.
        run, column = np.nonzero(used)
        work = np.where(used, self.world.nodes.work[nodes], 0)
        share = work[run, column] / work.sum(axis=1)[run]
        return Pieces(
            job=(first[episode[run]] + runs["consumer"][run]).astype(np.int32),
            begin=runs["begin"][run].astype(np.int32),
            end=runs["end"][run].astype(np.int32),
            units=(share * runs["work"][run])[:, None],
            node=nodes[run, column].astype(np.int32),
        )


def _jobs_of(batch: Batch, events: list[NDArray[np.int64]], nodes: Nodes, reach: float) -> Jobs:
    """The consumers of a batch as compiled code reads them, and the events of each jobset."""
    near = [nearest_types(one, nodes, reach) for one in batch.jobsets]
    consumers = new_records(int(batch.first[-1]), CONSUMER)
    consumers["arrival"] = batch.column("arrival", np.int64)
    consumers["duration"] = batch.column("duration", np.int64)
    consumers["cores"] = batch.column("demand", np.int64)[:, 0]
    for name in (MEMORY, CORE_TYPE, TOPOLOGY):
        consumers[name] = np.concatenate([specification(one, name) for one in batch.jobsets])
    consumers["num_types"] = np.concatenate([passing for _, passing in near])
    consumers["rate"], consumers["finish_gain"] = batch.costs.rate, batch.costs.finish_gain
    return Jobs(
        consumers,
        types=np.concatenate([types for types, _ in near]),
        late_rate=np.ascontiguousarray(batch.costs.late_rate.T),
        late_after=np.ascontiguousarray(batch.costs.late_after.T),
        events=np.concatenate(events),
    )


def _episodes_of(batch: Batch, events: list[NDArray[np.int64]], cloud: Cloud) -> Episodes:
    """Room for the episodes of a batch, not yet begun."""
    num_events = np.array([one.shape[0] for one in events])
    # Each run ends with its consumer or with a node that leaves.
    departures = np.array([(one[:, 1] == LEAVE).sum() for one in events])
    most_runs = batch.num_jobs + departures[batch.jobset]
    num_episodes, num_rows = batch.num_episodes, batch.num_places
    spans = new_records(num_episodes, SPAN)
    spans["consumer"], spans["count"] = batch.first[batch.jobset], batch.num_jobs
    spans["row"] = batch.place
    spans["event"] = (np.cumsum(num_events) - num_events)[batch.jobset]
    spans["num_events"] = num_events[batch.jobset]
    spans["run"], spans["most_runs"] = np.cumsum(most_runs) - most_runs, most_runs
    return Episodes(
        spans=spans,
        progress=new_records(num_episodes, PROGRESS),
        nodes=new_records((num_episodes, cloud.type.size), NODE),
        runs=new_records(int(most_runs.sum()), RUN),
        run_nodes=np.zeros((int(most_runs.sum()), cloud.held), np.int64),
        number=np.repeat(np.arange(num_episodes, dtype=np.int32), batch.num_jobs),
        agents=new_records(num_rows, AGENT),
        held=np.zeros((num_rows, cloud.held), np.int64),
        shown=np.full((num_rows, cloud.observed), -1, np.int64),
        waiting=np.zeros(num_rows, np.int64),
        running=np.zeros(num_rows, np.int64),
        active=np.zeros(num_rows, np.bool_),
        truncated=np.zeros(num_rows, np.bool_),
        time=np.zeros(num_rows, np.int64),
        states=np.zeros((num_rows, *state_space(cloud.observed + cloud.held).shape), np.int32),
    )


def _events_of(away: NDArray[np.int32]) -> NDArray[np.int64]:
    """What happens to nodes that are away at times, by clock; see `Jobs.events`."""
    node, announced, leaves, returns = away.T.astype(np.int64)
    kinds = (
        (announced, ANNOUNCE, leaves, announced < leaves),
        (leaves, LEAVE, leaves, leaves >= 0),
        (returns, RETURN, returns, returns < NEVER),
    )
    rows = [
        np.stack([clock, np.full_like(node, what), node, until], axis=1)[happens]
        for clock, what, until, happens in kinds
    ]
    events = np.concatenate(rows)
    return np.ascontiguousarray(events[np.lexsort(events.T[::-1])])
