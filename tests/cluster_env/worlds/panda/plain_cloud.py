"""The same cloud in plain Python, a second opinion on the compiled simulator."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cluster_env.core.jobs import JobSet
from cluster_env.worlds.panda.consumers import (
    CORE_TYPE,
    MEMORY,
    ONE_RACK,
    ONE_REGION,
    TOPOLOGY,
    absences,
    specification,
)
from cluster_env.worlds.panda.nodes import Nodes
from cluster_env.worlds.panda.world import Panda

FOUR = Nodes((2, 2), (4, 2), (1.0, 2.0), (8, 4), (0, 1), racks=2, regions=1)
"""Nodes 0 and 1 are slow, 2 and 3 fast; 0 and 2 stand in rack 0, 1 and 3 in rack 1."""


@dataclass
class Agent:
    """One consumer and its agent."""

    arrival: int
    duration: int
    cores: int
    memory: int
    core_type: int
    topology: int
    left: float = 0.0
    stage: str = "coming"
    held: list[int] = field(default_factory=list)
    since: int = -1
    start: int = -1
    began: int = -1
    finish: int = -1
    planned: int = -1


@dataclass(frozen=True)
class Action:
    """What an agent does, by nodes: which it catches and how much it needs each, and so on."""

    catch: Mapping[int, float] = field(default_factory=dict)
    release: Sequence[int] = ()
    wait: bool = False


class PlainCloud:
    """One episode, step by step, with lists and sets; `Panda` says what happens, without a hybrid.

    Args:
        world: nodes and rules.
        jobset: the consumers, and absences of nodes.
    """

    def __init__(self, world: Panda, jobset: JobSet) -> None:
        self.world, self.time, self.rounds, self.over = world, 0, 0, False
        specs = np.stack(
            [jobset.arrival, jobset.duration, jobset.demand[:, 0]]
            + [specification(jobset, name) for name in (MEMORY, CORE_TYPE, TOPOLOGY)],
            axis=1,
        )
        self.agents = [Agent(*spec) for spec in specs.tolist()]
        for agent in self.agents:
            agent.left = float(agent.duration)
        self.absences = absences(jobset).tolist()
        self.present = set(range(world.nodes.num_nodes))
        self._cores = world.nodes.column("cores").astype(int).tolist()
        self._memory = world.nodes.column("memory").astype(int).tolist()
        self._core_type = world.nodes.column("core_type").astype(int).tolist()
        self._speed = world.nodes.column("speed").tolist()
        self._happen()
        self._pass_time()

    @property
    def waiting(self) -> list[int]:
        """Consumers that wait, by arrival."""
        return [k for k, agent in enumerate(self.agents) if agent.stage == "waiting"]

    @property
    def free(self) -> list[int]:
        """Nodes that are there and that nobody holds."""
        held = {node for agent in self.agents for node in agent.held}
        return sorted(self.present - held)

    def step(self, actions: Mapping[int, Action]) -> None:
        """Carries out the actions of all that wait, and lets time pass until the next decision."""
        before = {k: list(self.agents[k].held) for k in actions}
        moved = False
        for k in sorted(actions):
            for node in actions[k].catch:
                self._catch(k, node, actions)
        for k, action in actions.items():
            moved |= self.agents[k].held != before[k]
            for node in action.release:
                if node in before[k]:
                    self.agents[k].held.remove(node)
                    moved = True
        for k in sorted(actions):
            if not actions[k].wait and self.satisfied(k):
                self._start(self.agents[k])
                moved = True
        self.rounds += 1
        if moved and self.waiting and self.rounds < self.world.rounds:
            return
        self.rounds = 0
        if self.waiting:
            self.time += 1
            self._happen()
        self._pass_time()

    def satisfied(self, k: int) -> bool:
        """Whether what a consumer holds satisfies its specification."""
        agent = self.agents[k]
        if not agent.held:
            return False
        cores = sum(self._cores[node] for node in agent.held)
        return cores >= agent.cores and sum(self._memory[n] for n in agent.held) >= agent.memory

    def _catch(self, k: int, node: int, actions: Mapping[int, Action]) -> None:
        """Gives a node that consumer k catches to the one that is to have it."""
        rivals = [
            other
            for other in sorted(actions)
            if other >= k and node in actions[other].catch and self._has_room(other)
        ]
        if k not in rivals or node not in self.free or not self._suits(k, node):
            return
        winner = k
        if self.world.collision == "need":
            winner = max(rivals, key=lambda other: (actions[other].catch[node], -other))
        agent = self.agents[winner]
        if not agent.held:
            agent.since = self.time
        agent.held.append(node)

    def _has_room(self, k: int) -> bool:
        return len(self.agents[k].held) < self.world.held

    def _suits(self, k: int, node: int) -> bool:
        return self.agents[k].core_type in (-1, self._core_type[node])

    def _stretch(self, agent: Agent) -> float:
        racks = {int(self.world.nodes.rack[node]) for node in agent.held}
        regions = {int(self.world.nodes.region[node]) for node in agent.held}
        if agent.topology >= ONE_REGION and len(regions) > 1:
            return 1.6
        return 1.25 if agent.topology == ONE_RACK and len(racks) > 1 else 1.0

    def _start(self, agent: Agent) -> None:
        speed = min(self._speed[node] for node in agent.held)
        length = max(1, math.ceil(agent.left * self._stretch(agent) / speed - 1e-9))
        agent.stage, agent.began, agent.planned = "running", self.time, self.time + length
        agent.start = self.time if agent.start < 0 else agent.start

    def _happen(self) -> None:
        """Finishes, then returns and departures, nodes taken back, then arrivals."""
        for agent in self.agents:
            if agent.stage == "running" and agent.planned <= self.time:
                agent.stage, agent.finish, agent.held = "done", agent.planned, []
        self.present |= {node for node, _, _, returns in self.absences if returns == self.time}
        for node, _, leaves, _ in self.absences:
            if leaves == self.time:
                self._lose(node)
        for agent in self.agents:
            patience = self.world.patience
            if patience and agent.stage == "waiting" and agent.held:
                agent.held = agent.held if self.time - agent.since < patience else []
        for agent in self.agents:
            if agent.stage == "coming" and agent.arrival <= self.time:
                agent.stage = "waiting"
        if all(agent.stage == "done" for agent in self.agents) or self.time >= self.world.max_time:
            self.over = True

    def _lose(self, node: int) -> None:
        self.present.discard(node)
        for agent in self.agents:
            if node not in agent.held:
                continue
            agent.held.remove(node)
            if agent.stage != "running":
                continue
            agent.stage, agent.since = "waiting", self.time
            agent.start = -1

    def _pass_time(self) -> None:
        while not self.over and not self.waiting:
            self.time += 1
            self._happen()
