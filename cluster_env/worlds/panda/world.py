"""A cloud of unlike nodes as a world: its decision process, its options, and its features."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

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
from cluster_env.core.jobs import LARGEST, JobSet
from cluster_env.core.registry import unknown
from cluster_env.core.world import Features
from cluster_env.worlds.panda.allocation import GOLDEN
from cluster_env.worlds.panda.consumers import (
    ANYWHERE,
    CORE_TYPE,
    MEMORY,
    ONE_RACK,
    TOPOLOGY,
    absences,
    can_be_satisfied,
    specification,
)
from cluster_env.worlds.panda.features import CONTEXT, ITEM, Largest, decide_alone, describe
from cluster_env.worlds.panda.nodes import Nodes
from cluster_env.worlds.panda.plans import BEST_FIT, FASTEST
from cluster_env.worlds.panda.simulator import PandaSimulator
from cluster_env.worlds.panda.state import Cloud, new_offer, state_space

COLLISION = ("arrival", "need")


@dataclass(frozen=True)
class Panda:
    """Agents that collect nodes for their consumers, a decision process of many (PANDA, 3.2).

    A consumer asks for cores and memory, perhaps for a core type and a place. Its agent collects
    nodes for it until they satisfy that specification, and lives from its arrival to its departure.
    As several agents decide, Gymnasium's environments of one agent refuse this world, and it has no
    id there: `PandaMultiAgentEnv` in `rllib_configs.worlds.panda.multi_agent` is it for RLlib.

    **State.** Of one agent, int32, with names in `state`: the `HEADER` has the specification, what
    is held of it, and how many others wait; then each of the supervisor's `PLANS` has `PLAN_SEEN`,
    and each observed and each held node has `NODE_SEEN`. Observed are free nodes that pass the
    attention filter (3.2.2), those of the nearest type first.

    **Action.** A row of zeros and ones: one for each observed node (*catch* it), one for each held
    node (*release* it), and a last one (*wait*) (3.2.2). An integer in its place is the one bit
    that is 1. All catches come first, and the supervisor resolves collisions (3.2.3); then all
    releases, whose nodes are free for the next catch; then each consumer starts whose agent does
    not wait and whose held nodes satisfy its specification: enough cores and memory, all of the
    right core type. It holds all of them until it is done. If one leaves during the run, the
    consumer waits again, keeps the others, and has all of its work to do anew. A rule that knows
    all nodes may decide in place of all agents, see `PandaSimulator.step`.

    **Mask.** A bit makes sense where there is a node, and to wait always does; others do nothing.

    **Clock.** Whole steps. At one instant consumers finish, nodes return, are announced to leave
    and leave, nodes that were held too long are reclaimed, consumers arrive, and then the agents of
    all decide who wait. As long as one waits, decisions are one step apart; else the clock goes on
    to what happens next. A run takes the consumer's duration over the speed of its slowest node,
    and `stretch` times as long where its nodes do not stand in the rack or region that it prefers.

    **Reward.** Minus what the consumer costs under the objective until its agent's next decision
    (3.2.3); a start is charged for the whole run ahead, which its nodes decide, and if one of them
    leaves, the next decision is given back the rest. So the undiscounted return of an agent is
    exactly minus what its consumer costs: at most 0, but for objectives with a gain. Objectives of
    whole episodes, such as the makespan, are refused.

    **End.** An agent is done when its consumer departs. All are truncated at `max_time`.

    What the paper leaves open is an option here.

    Attributes:
        nodes: what there is, when all of them are there.
        collision: which agent gets a node that several agents catch: the one whose consumer arrived
            first (``arrival``), or the one whose actor needs it most (``need``, footnote 2 of the
            paper).
        observed: largest number of free nodes that an agent sees.
        held: largest number of nodes that an agent can hold.
        reach: how unlike the best node's type the type of an observed node may be, in root mean
            square distances of all types from their mean (attention filter). A large value shows
            all types.
        patience: steps after which nodes that an agent holds without a start are reclaimed. 0:
            never, so two agents that each hold what the other one needs wait forever.
        rounds: largest number of decisions at one clock. All waiting agents decide again after one
            in which a node was caught or released or a consumer started, so an agent that lost a
            node need not wait a step.
        hybrid: share of the clocks, evenly spread, at which the static scheduler (``envy_free``)
            decides in place of learned policies (section 5); 1: all clocks. Rules decide at all
            clocks themselves.
        max_time: time step at which an episode is truncated.
    """

    kind: ClassVar[str] = "panda"

    nodes: Nodes = field(default_factory=Nodes)
    collision: str = "arrival"
    observed: int = 16
    held: int = 8
    reach: float = 1e9
    patience: int = 0
    rounds: int = 1
    hybrid: float = 0.0
    max_time: int = 20_000

    def __post_init__(self) -> None:
        require_option_types(self)
        require_ranges(
            self,
            observed=(1, 1024),
            held=(1, 1024),
            max_time=(1, LARGEST),
            rounds=(1, 1024),
            patience=(0, LARGEST),
            hybrid=(0, 1),
        )
        if not self.reach > 0:
            raise InputError(f"reach must be above 0, but {self.reach:g} was given")
        if self.collision not in COLLISION:
            raise unknown("value of collision", self.collision, COLLISION)

    @cached_property
    def cloud(self) -> Cloud:
        """Nodes and rules as compiled code reads them."""
        nodes = self.nodes
        place = np.stack([np.zeros_like(nodes.rack), nodes.region, nodes.rack])
        return Cloud(
            type=nodes.type,
            cores=nodes.column("cores").astype(np.int64),
            memory=nodes.column("memory").astype(np.int64),
            core_type=nodes.column("core_type").astype(np.int64),
            speed=nodes.column("speed"),
            place=place,
            num_places=place.max(axis=1) + np.int64(1),
            type_speed=np.array(nodes.speed, np.float64),
            first_of_type=np.concatenate([[0], np.cumsum(nodes.count)]).astype(np.int64),
            collision=COLLISION.index(self.collision),
            observed=self.observed,
            held=self.held,
            patience=self.patience,
            rounds=self.rounds,
            hybrid=float(self.hybrid),
            max_time=self.max_time,
        )

    @cached_property
    def state_space(self) -> spaces.Box:
        """Of the state of one agent."""
        return state_space(self.observed + self.held)

    @property
    def num_actions(self) -> int:
        """Bits of an action: one for each observed node and each held one, and wait."""
        return self.observed + self.held + 1

    @property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """See `cluster_env.worlds.panda.features`."""
        return ITEM._fields, CONTEXT._fields

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every consumer could run if all nodes were there.

        Raises:
            InputError: if one could not, or an absence is of a node that there is not.
        """
        if jobset.num_resources != 1:
            raise InputError(
                f"consumers ask for cores, and for memory by an attribute, but these ask for "
                f"{jobset.num_resources} resources"
            )
        away = absences(jobset)
        if away.size and away[:, 0].max() >= self.nodes.num_nodes:
            raise InputError(
                f"node {away[:, 0].max()} is to leave, but there are {self.nodes.num_nodes}"
            )
        topology = specification(jobset, TOPOLOGY)
        if topology.size and not ANYWHERE <= topology.min() <= topology.max() <= ONE_RACK:
            raise InputError("a topology is 0 for anywhere, 1 for one region or 2 for one rack")
        memory, core_type = (specification(jobset, name) for name in (MEMORY, CORE_TYPE))
        specs = np.stack([jobset.demand[:, 0].astype(np.int64), memory, core_type], axis=1)
        cores, size, kind = (self.nodes.column(name) for name in ("cores", MEMORY, CORE_TYPE))
        # One node is enough for most, which is quick to see for all at once.
        alone = (cores >= specs[:, :1]) & (size >= specs[:, 1:2])
        alone &= (kind == specs[:, 2:3]) | (specs[:, 2:3] < 0)
        for spec in np.unique(specs[~alone.any(axis=1)], axis=0):
            key = tuple(spec.tolist())
            if key in self._can_be_satisfied:
                continue
            if not can_be_satisfied(self.nodes, self.held, *key):
                job = int(np.flatnonzero((specs == spec).all(axis=1))[0])
                raise InputError(
                    f"consumer {job} asks for {spec[0]} cores and {spec[1]} GB on cores of "
                    f"type {spec[2] if spec[2] >= 0 else 'any'}, which {self.held} nodes of "
                    "this cloud cannot provide, so it could never run"
                )
            self._can_be_satisfied.add(key)

    def simulator(self) -> PandaSimulator:
        """A new simulator, with nothing loaded."""
        return PandaSimulator(self)

    def features(self, states: NDArray[np.int32], out: Features | None = None) -> Features:
        """What a network sees: observed nodes, then held ones."""
        require_states(states, self.state_space)
        n, num_items = states.shape[0], self.observed + self.held
        written = outputs(
            out,
            ((n, num_items, len(ITEM)), np.float32),
            ((n, len(CONTEXT)), np.float32),
            ((n, self.num_actions), np.bool_),
        )
        # Two features of a node are what an agent would do with it that follows a rule by itself.
        states = np.ascontiguousarray(states)
        ruled = (self.ruled(states, order) for order in (BEST_FIT, FASTEST))
        describe(states, self.observed, self._largest, *ruled, *written)
        return Features(*written)

    def ruled(self, states: NDArray[np.int32], order: int) -> NDArray[np.int8]:
        """What agents would do that follow a rule by themselves, int8 ``(n, num_actions)``.

        The next node is picked in an order of `cluster_env.worlds.panda.plans.pick`.

        Raises:
            InputError: for states of another world.
        """
        require_states(states, self.state_space)
        bits = np.empty((states.shape[0], self.num_actions), np.int8)
        decide_alone(
            *(np.ascontiguousarray(states), order, self.observed, self.held),
            *(new_offer(self.observed), bits),
        )
        return bits

    def overruled(self, clock: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """At which clocks the static scheduler of a hybrid decides, of the shape of ``clock``."""
        return np.asarray(clock * GOLDEN % 1.0 < self.hybrid)

    @cached_property
    def _largest(self) -> Largest:
        nodes = self.nodes
        return Largest(
            cores=float(max(nodes.cores)),
            memory=float(max(nodes.memory)),
            speed=100.0 * max(nodes.speed),
            num_core_types=max(nodes.core_type) + 1.0,
            num_nodes=float(nodes.num_nodes),
            num_cores=float(nodes.column("cores").sum()),
        )

    @cached_property
    def _can_be_satisfied(self) -> set[tuple[int, ...]]:
        """Specifications that have passed `check`: searches play the same ones again and again."""
        return set()
