"""The seam between schedulers and what they act in: a world, its simulator and what a policy sees.

Networks see features and never states. States are small arrays of integers that travel between
machines; features are a deterministic function of a state and its world. A row is one decider: an
episode where one agent decides, a pair of episode and agent where several do.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.jobs import JobSet
from cluster_env.core.plain import from_plain
from cluster_env.core.policy import Policy
from cluster_env.core.promises import Promises
from cluster_env.core.registry import Registry, unknown
from cluster_env.core.schedule import Schedule
from cluster_env.core.shorthand import Shorthand
from cluster_env.objectives import Objective

State = NDArray[Any]  # (n, state_size), of the type of the world's state space
Mask = NDArray[np.bool_]  # (n, num_actions)
Value = str | int | float | bool
N = TypeVar("N", int, float)
T = TypeVar("T")


class Features(NamedTuple):
    """What a network sees of n states.

    Items are what a policy chooses from: waiting jobs, candidate next states, nodes. The first
    feature of an item is 1, or 0 for a place where none is, whose other features are 0 too.
    """

    items: NDArray[np.float32]  # (n, num_items, item_size)
    context: NDArray[np.float32]  # (n, context_size)
    allowed: Mask  # (n, num_items + 1); the last action, void, takes none


class Simulator(Protocol):
    """Many episodes of a world side by side."""

    @property
    def num_rows(self) -> int:
        """Number of deciders that are loaded."""

    @property
    def episode(self) -> NDArray[np.int32]:
        """Index of each row's episode, int32 ``(num_rows,)``."""

    @property
    def states(self) -> State:
        """The states of all rows, ``(num_rows, state_size)``: a view that changes."""

    @property
    def time(self) -> NDArray[Any]:
        """The clock of each row in the world's unit, integers ``(num_rows,)``: a view."""

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which rows are to decide, bool ``(num_rows,)``: a view.

        Where several rows share an episode, one may become active later: agents arrive.
        """

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Which rows were cut at the world's end of time, bool ``(num_rows,)``: a view."""

    def load(
        self, jobsets: Sequence[JobSet], objective: Objective, episodes_per_jobset: int = 1
    ) -> None:
        """Takes the jobs of the next episodes and resets.

        Args:
            jobsets: what is scheduled; episode ``e`` runs ``jobsets[e // episodes_per_jobset]``.
            objective: what the rewards are.
            episodes_per_jobset: episodes that run each jobset.

        Raises:
            InputError: if there is no jobset, or a job cannot run in this world.
        """

    def reset(self, rows: NDArray[np.int32] | None = None) -> None:
        """Puts all rows, or the given ones, back to the beginning of their jobsets."""

    def step(
        self, rows: NDArray[np.int32], actions: NDArray[np.int32], rewards: NDArray[np.float64]
    ) -> int:
        """Takes one decision in some rows, without allocating.

        Args:
            rows: int32 ``(m,)``; where rows share an episode, all active ones of it.
            actions: int32 ``(m,)``.
            rewards: float64, of at least m elements, the first m of which are written.

        Returns:
            How many of these rows are still active.
        """

    def take_over(self, other: Any, source: NDArray[np.int32], target: NDArray[np.int32]) -> None:
        """Copies the states of rows under way, all that the rest of an episode depends on.

        Args:
            other: a simulator of the same world, in which each source row runs the same jobset
                under the same objective as its target row does here.
            source: int32 ``(m,)``, rows of the other one.
            target: int32 ``(m,)``, rows of this one.
        """

    def schedule(self) -> Schedule:
        """The jobs that have arrived in each episode, and what became of them."""


class PlayingSimulator(Simulator, Protocol):
    """A simulator that plays rules of its world by itself; see `PlayedPolicy`."""

    def play(self, rule: Any, keys: NDArray[np.uint64] | None = None) -> None:
        """Plays all episodes to their ends; states and rewards are left as they are.

        Args:
            rule: what decides, of the world's own kind.
            keys: of the episodes' random numbers, uint64 ``(num_rows,)``.
        """


class World(Protocol):
    """What a scheduler acts in: a frozen dataclass of its options.

    In Graham's three fields a world is alpha, the machines; a workload is beta, the jobs; an
    objective is gamma.
    """

    kind: ClassVar[str]

    @property
    def state_space(self) -> spaces.Box:
        """Of the state of one row; its shape is ``(state_size,)``."""

    @property
    def num_actions(self) -> int:
        """One for each item, and void, the last one."""

    @property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the features of an item, and of the context."""

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job can run.

        Raises:
            InputError: if one cannot.
        """

    def simulator(self) -> Simulator:
        """A new simulator, with nothing loaded."""

    def features(self, states: State, out: Features | None = None) -> Features:
        """What a network sees of states; written to ``out`` if that is given."""


@dataclass(frozen=True)
class Observation:
    """A way to look at a state.

    Attributes:
        space: what the observation of one state is.
        write: called with states, ``(n, state_size)``, and a batch of n observations, which it
            fills.
        world: whose states they are, where it needs more of a state than the world shows that it
            was made for.
    """

    space: spaces.Space[Any]
    write: Callable[[State, Any], None]
    world: World | None = None


@dataclass(frozen=True)
class Heuristic:
    """A rule that nobody trained.

    Attributes:
        make: builds the policy from the world and the text behind the colon of its name, which is
            empty if there is none.
        numbers: the texts that are tried where the number is to be tuned; empty for a heuristic
            without one.
    """

    make: Callable[[Any, str], Policy]
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkloadKind:
    """A distribution over jobsets that configs can name.

    Attributes:
        workload: a frozen dataclass with a method `sample`; its fields are the settings.
        given: those of its fields that the world decides, from the world.
        own: fields that a change to this workload does not take over from another one, though they
            have the same name.
        read: reads the job log that its settings name, of a machine that the log may describe; from
            plain settings. None where jobs are of no such log.
    """

    workload: type[Any]
    given: Callable[[Any], Mapping[str, Any]] = lambda world: {}
    own: tuple[str, ...] = ()
    read: Callable[[Mapping[str, Any]], Any] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all its fields."""
        return tuple(entry.name for entry in fields(self.workload))


@dataclass(frozen=True)
class Axis:
    """The setting that a comparison varies.

    Attributes:
        key: of the setting in a task, as ``workload.load``.
        show: writes a value for people: ``load 70%``.
        reach: the largest value that a task can have, for those that ask for more.
        option: another name of the option ``--at`` of commands, if there is one: ``loads``.
    """

    key: str
    show: Callable[[float], str] = "{:g}".format
    reach: Callable[[Any], float] = lambda task: float("inf")
    option: str = ""

    @property
    def name(self) -> str:
        """The last part of the key, as tables call it: ``load``."""
        return self.key.rpartition(".")[2]


def _write_state(states: State, out: Any) -> None:
    out[:] = states


def _state_itself(world: World) -> Observation:
    return Observation(world.state_space, _write_state)


def _allowed_by_features(world: World, states: State, out: Mask | None = None) -> Mask:
    allowed = world.features(states).allowed
    if out is None:
        return allowed
    out[:] = allowed
    return out


def _registry(kind: str, name: str, only: T) -> Registry[T]:
    registry: Registry[T] = Registry(kind)
    registry.register(name)(only)
    return registry


@dataclass(frozen=True)
class NamedJobsets:
    """Jobsets that are as they are, in place of drawn ones: a published comparison, a whole log.

    Attributes:
        about: what they are, in a few words.
        jobsets: gives them, from a task; they may hold jobs that a policy was trained on.
        columns: what differs from the columns of the task, from the jobsets.
        policies: rules by name that repeat what was published on these jobsets. They can be named
            like heuristics, but are offered nowhere.
    """

    about: str
    jobsets: Callable[[Any], Sequence[JobSet]]
    columns: Callable[[Sequence[JobSet]], Mapping[str, Value]] = lambda jobsets: {}
    policies: Mapping[str, Heuristic] = field(default_factory=dict)


@dataclass(frozen=True)
class Optimum:
    """How the best schedule of a jobset is found in hindsight.

    Attributes:
        metrics: names of the metrics whose best it can find; the first is the default.
        search: finds it; called with a jobset, the world and a metric, and by name with starts of
            known schedules (``known``), ``time_limit_s`` and ``seed``. What it returns has
            ``metric``, ``status`` (``optimal`` or ``feasible``), ``value``, ``bound`` and
            ``schedule``.
        require: raises `InputError` where it cannot work.
        time_limit_s: how long it usually may search, in seconds.
    """

    metrics: tuple[str, ...]
    search: Callable[..., Any]
    require: Callable[[], None] = lambda: None
    time_limit_s: float = 60.0


@dataclass(frozen=True)
class Kind:
    """All that there is to know of a world by name: its one registration.

    Attributes:
        world: the dataclass; its fields are the settings of ``task.world``.
        workloads: distributions over its jobsets; their fields are those of ``task.workload``.
            The first is the default.
        heuristics: rules by name.
        baselines: heuristics whose best result divides costs; the first is what returns are
            measured in while training.
        metrics: names of what is measured of a schedule; the first is the headline.
        objective: what is learned where a config does not say it.
        price: metrics that stand beside the headline in every table, because a better headline may
            be bought with them; and by what share each may be worse than a baseline's in a guard.
        reference: name of the heuristic that a guard compares prices with, from the world; if it is
            empty, that is the best of the baselines.
        observations: what Gymnasium environments can show, from the world; the first is the
            default, as it is of masks. If none is given, the state itself.
        masks: which actions make sense, from the world, states and, if given, an array to write;
            if none is given, those that the features allow.
        axis: what a comparison varies.
        shorthands: settings of a task that commands offer as options, by the option's name.
        steady: shorthands and the warm-up, in units of time, of a comparison whose user says
            neither; from a task. In short windows it pays to keep jobs waiting.
        columns: the head of a table's rows: what is to be known of a task.
        describe: says in words what the columns say.
        remarks: sentences that belong under a table of rows, from the rows.
        words: names the jobs of a task: ``load 70%``.
        time: writes a time of the world for people: ``7.5 h``, or a number of steps.
        time_unit: what a time of the world counts, as labels have it.
        check: refuses tasks that make no sense.
        environments: options of the Gymnasium environments by their ids.
        draw: makes an RGB picture of a row of a simulator.
        promises: what its environments promise beyond what all do.
        warm: runs once what is compiled, so that nothing has to wait for it later.
        optimum: how the best schedule is found in hindsight, if anybody knows.
        plain: makes one episode in plain Python, which benchmarks compare the simulator with; from
            the world and a jobset.
        protocols: jobsets by name that policies can be compared on beside unseen ones.
        families: jobsets by name that a policy for worlds of any size is trained on, each with the
            world that it runs in; drawn from the world whose other options hold, a number of jobs
            and a generator.
        transfers: fields of the world in which a policy may meet another value than it was trained
            with; in all others they have to agree.
        policies: trained policies that come with metasched by name: their folders, as
            `rllib_configs.policy_files` reads them.
        discount: of a unit of time, by which the rewards of a world discount already what comes
            between two decisions (a semi-MDP's); from the world. Training must not do it again.
        agents: whether several agents decide in an episode, each by an action of its own.
    """

    world: type[Any]
    workloads: Registry[WorkloadKind] = field(default_factory=lambda: Registry("workload"))
    heuristics: Registry[Heuristic] = field(default_factory=lambda: Registry("heuristic"))
    baselines: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("completion_time", "makespan", "utilization")
    objective: str = "slowdown"
    price: Mapping[str, float] = field(default_factory=dict)
    reference: Callable[[Any], str] = lambda world: ""
    observations: Registry[Callable[[Any], Observation]] = field(
        default_factory=lambda: _registry("observation", "state", _state_itself)
    )
    masks: Registry[Callable[..., Mask]] = field(
        default_factory=lambda: _registry("mask", "allowed", _allowed_by_features)
    )
    axis: Axis | None = None
    shorthands: Mapping[str, Shorthand] = field(default_factory=dict)
    steady: Callable[[Any], tuple[Mapping[str, Any], int]] = lambda task: ({}, 0)
    columns: Callable[[Any], Mapping[str, Value]] = lambda task: {}
    describe: Callable[[Mapping[str, Any]], str] = lambda columns: ""
    remarks: Callable[[Sequence[Mapping[str, Any]]], Sequence[str]] = lambda rows: ()
    words: Callable[[Any], str] = lambda task: task.name
    time: Callable[[float], str] = "{:,.1f}".format
    time_unit: str = "steps"
    check: Callable[[Any], None] = lambda task: None
    environments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    draw: Callable[[Any, int], NDArray[np.uint8]] | None = None
    promises: Promises = field(default_factory=Promises)
    warm: Callable[[], None] = lambda: None
    optimum: Optimum | None = None
    plain: Callable[[Any, JobSet], Any] | None = None
    protocols: Mapping[str, NamedJobsets] = field(default_factory=dict)
    families: Mapping[str, Callable[[Any, int, np.random.Generator], tuple[Any, JobSet]]] = field(
        default_factory=dict
    )
    transfers: tuple[str, ...] = ()
    policies: Mapping[str, Path] = field(default_factory=dict)
    discount: Callable[[Any], float] = lambda world: 1.0
    agents: bool = False

    @property
    def headline(self) -> str:
        """Name of the metric that counts where an objective says nothing else."""
        return self.metrics[0]


WORLDS: Registry[Kind] = Registry("world")
"""Worlds by name; `cluster_env.worlds` enters those that come with metasched."""


def build_world(option: World | str | Mapping[str, Any]) -> World:
    """A world as its users name it.

    Args:
        option: a world; the name of a kind, for one with defaults; or options with ``kind``.

    Raises:
        InputError: for an unknown kind or option, or an impossible value.
    """
    if isinstance(option, str):
        option = {"kind": option}
    if not isinstance(option, Mapping):
        return option
    options = dict(option)
    made: World = from_plain(
        WORLDS.get(str(options.pop("kind", ""))).world, options, "option of the world"
    )
    return made


def kind_of(world: World) -> Kind:
    """The registration of a world's kind.

    Raises:
        InputError: if it was not registered.
    """
    return WORLDS.get(world.kind)


def differences(
    world: Any, other: Any, ignored: Sequence[str] = ()
) -> Iterator[tuple[str, Any, Any]]:
    """The fields in which two worlds differ, with both values; of parts, theirs.

    Args:
        world: the one.
        other: the other.
        ignored: names of fields of the world that may differ.
    """
    if type(world) is not type(other):
        yield "the kind", getattr(world, "kind", world), getattr(other, "kind", other)
        return
    for entry in fields(other):
        one, two = getattr(world, entry.name), getattr(other, entry.name)
        if entry.name in ignored or one == two:
            continue
        if is_dataclass(two):
            yield from differences(one, two)
        else:
            yield entry.name, one, two


def get_heuristic(spec: str, world: World) -> Policy:
    """Returns a heuristic of a world.

    Args:
        spec: a name, or a name and its number: ``sjf``, ``tetris:0.005``.
        world: what it acts in.

    Raises:
        InputError: if there is no such heuristic, or its number is out of range.
    """
    name, _, argument = spec.partition(":")
    known = heuristics_of(kind_of(world))
    if name not in known:
        raise unknown("heuristic", name, known)
    return known[name].make(world, argument)


def heuristics_of(kind: Kind) -> dict[str, Heuristic]:
    """All rules of a world that can be named: its heuristics, and those of its protocols."""
    offered = {name: kind.heuristics.get(name) for name in kind.heuristics.names()}
    published = (one.policies for one in kind.protocols.values())
    return offered | {name: rule for rules in published for name, rule in rules.items()}


def no_argument(name: str, argument: str) -> None:
    """Makes sure that a heuristic without a number was given none.

    Raises:
        InputError: if it was.
    """
    if argument:
        raise InputError(f"'{name}' takes no number, but '{name}:{argument}' was given")


def number_of(name: str, text: str, kind: type[N], default: N) -> N:
    """The number behind the colon of a heuristic's name.

    Raises:
        InputError: if the text is none.
    """
    try:
        return kind(text) if text else default
    except ValueError as error:
        raise InputError(
            f"'{name}:' needs a number after the colon, not '{shortened(text)}'"
        ) from error
