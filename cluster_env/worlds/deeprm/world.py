"""DeepRM's cluster as a world: its rules in words, its options, and what a network sees of it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.checks import outputs, require_option_types, require_states
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.world import Features
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.features import (
    IDLE_PATIENCE,
    context_feature_names,
    slot_feature_names,
    write_allowed,
    write_context,
    write_slots,
)
from cluster_env.worlds.deeprm.rules import RULES, Rules
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator
from cluster_env.worlds.deeprm.state import StateLayout

DEFAULT_MAX_TIME = 1000
LONGEST_TIME = 1_000_000_000


@dataclass(frozen=True)
class DeepRM:
    """Which waiting job starts next on one cluster (Mao et al., HotNets 2016, section 3).

    Jobs arrive in the course of time, each with a duration and a demand of every resource. The
    first `num_slots` waiting jobs stand in slots that the policy sees; more wait in the backlog and
    move up in the order of their arrival. What runs is booked ahead in a *horizon* of time steps.

    **State.** uint8 ``(83,)`` by default, see `StateLayout`: the units in use in each step of the
    horizon, the jobs in the slots and how long they have waited, the length of the backlog, the
    time since the last arrival, and the arrival window. Where the cluster has more than one class
    of jobs, the class of each job in a slot, too.

    **Action.** ``0..num_slots``. Action ``a < num_slots`` books the job of slot ``a`` at the
    earliest step of the horizon from which all its demands fit until it is done. The last action,
    void, books nothing.

    **Clock.** A booking takes no time: the policy decides again in the same time step. Void, an
    empty slot, or a job that fits nowhere in the horizon lets one step pass: finished jobs leave,
    then new jobs arrive, then the policy decides.

    **Observation.** By name, all functions of the state. ``image``: uint8 ``(horizon, width)`` of
    zeros and ones, 20 x 223 by default, the paper's figure 2. ``compact``: float32 ``(71,)`` by
    default, free units, slots and backlog unscaled. ``slots``: a dict of ``slots``, float32
    ``(num_slots, 11 + num_resources)``, and ``context``, float32
    ``(horizon * num_resources + 3,)``, all in [0, 1]; with several classes, `num_classes` more for
    each slot. ``state``: the state itself. ``features``: a dict of ``items`` and ``context``, what
    networks see: as ``slots``, and the arrival window at the end of the context. Only the last
    three show classes.

    **Mask.** bool ``(num_slots + 1,)``. ``live``, the default: the jobs that would start in the
    present step, and void, but where nothing runs, something could and nothing has arrived for 10
    steps. There any other action starts the first such job, so that every policy finishes all jobs.
    ``start_now``: the same, and void everywhere. ``placeable``: void and the jobs that can be
    placed in the horizon, that is, exactly the slots whose action books something. All other
    actions outside the mask are carried out as said above.

    **Reward.** 0 for a booking. For a time step, with the objective ``slowdown``, minus the sum of
    1 / duration over the jobs in the system (booked, in a slot or in the backlog): it lies in
    [-jobs in the system, 0], and the undiscounted return of an episode that finishes all jobs is
    minus the sum of their slowdowns (section 3.2). Other objectives have their identities in
    `cluster_env.objectives.standard`; of them, ``utilization`` rewards in [0, 1], and all others at
    most 0. An objective whose jobs gain something when they finish is refused. The released rules
    charge a step for the jobs in the system after it and let some finished jobs linger; the
    identity is theirs no more.

    **Episode.** One jobset. It is *terminated* when the arrival window is over and all jobs have
    finished (with the rule ``no_new_job``: when the window is over), and *truncated* when the clock
    passes `max_time`. Under the paper's rules no job is ever lost. An empty jobset lasts for its
    window.

    **Version history.** ``DeepRM-v0``: the paper's rules. ``DeepRMReleased-v0``: the released
    code's rules (`Rules` says each difference), no arrival in step 0, `max_time` 200. Up to version
    0.2 of metasched their default mask was ``placeable``, and ``live`` forced no start.

    Attributes:
        cluster: resources, horizon, and what a policy sees of the queue.
        rules: rules of the simulator: ``paper``, ``released`` (those of the released code), another
            name in `RULES`, or any `Rules`.
        max_time: time step after which an episode is truncated, at least 1.
    """

    kind: ClassVar[str] = "deeprm"

    cluster: Cluster = field(default_factory=Cluster)
    rules: str | Rules = "paper"
    max_time: int = DEFAULT_MAX_TIME

    def __post_init__(self) -> None:
        require_option_types(self)
        if not 1 <= self.max_time <= LONGEST_TIME:
            raise InputError(
                f"max_time must lie in 1..{LONGEST_TIME}, but {self.max_time} was given"
            )
        if isinstance(self.rules, str):
            RULES.get(self.rules)
        else:  # two ways to say the same are equal, and configs hold the name
            named = [name for name in RULES.names() if RULES.get(name) == self.rules]
            object.__setattr__(self, "rules", named[0] if named else self.rules)

    @cached_property
    def switches(self) -> Rules:
        """The rules themselves, whether or not they have a name."""
        return RULES.get(self.rules) if isinstance(self.rules, str) else self.rules

    @cached_property
    def layout(self) -> StateLayout:
        """Where the parts of a state lie."""
        return StateLayout(self.cluster)

    @property
    def state_space(self) -> spaces.Box:
        """Bytes, see `StateLayout`."""
        return self.layout.space

    @property
    def num_actions(self) -> int:
        """One for each slot, and void."""
        return self.cluster.num_actions

    @cached_property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """See `cluster_env.worlds.deeprm.features`."""
        return slot_feature_names(self.cluster), context_feature_names(self.cluster)

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job can run on the empty cluster and arrives before the end.

        Raises:
            InputError: if one cannot, or jobs may arrive after `max_time`.
        """
        self.cluster.check(jobset)
        self.check_window(jobset.window)

    def check_window(self, window: int) -> None:
        """Makes sure that episodes last as long as jobs may arrive.

        Raises:
            InputError: if jobs may arrive after `max_time`.
        """
        if self.max_time < window:
            raise InputError(
                f"max_time is {self.max_time}, but jobs may arrive for {window} steps; give more "
                f"than that, so that the last jobs can finish"
            )

    def simulator(self) -> DeepRMSimulator:
        """A new simulator, with nothing loaded."""
        return DeepRMSimulator(self)

    def features(self, states: NDArray[np.uint8], out: Features | None = None) -> Features:
        """What a network sees: the slots, the cluster, and the actions of the mask ``live``.

        Raises:
            InputError: if an array has the wrong shape or type.
        """
        require_states(states, self.state_space)
        n, (of_slot, of_context) = states.shape[0], map(len, self.feature_names)
        items, context, allowed = outputs(
            out,
            ((n, self.cluster.num_slots, of_slot), np.float32),
            ((n, of_context), np.float32),
            ((n, self.num_actions), np.bool_),
        )
        shape, try_last_start = self.layout.shape, self.switches.try_last_start
        write_slots(states, shape, try_last_start, items)
        write_context(states, shape, context)
        write_allowed(states, shape, try_last_start, 0, IDLE_PATIENCE, allowed)
        return Features(items, context, allowed)
