"""What is registered of a world: its `WorldSpec`, and what can be had of a world by name.

A world of one's own needs the six fields of `WorldSpec` or fewer. Four optional parts say how
tables present it, what Gymnasium shows of it, how policies are trained in it, and which tools know
it; each has defaults.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from cluster_env.core.checks import from_plain, require_option_types
from cluster_env.core.jobs import JobSet
from cluster_env.core.observation import (
    Observation,
    allowed_mask,
    features_observation,
    flat_observation,
    state_observation,
)
from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry, no_argument
from cluster_env.core.seeding import Split
from cluster_env.core.world import Mask, World

Value = str | int | float | bool


@dataclass(frozen=True)
class WorkloadSpec:
    """A distribution over jobsets that configs can name.

    Attributes:
        workload: a frozen dataclass with a method `sample`; its fields are the settings.
        from_world: those of its fields that the world decides, from the world.
        own: fields that a change to this workload does not take over from another one, and does
            not leave to another one, though they have the same name.
        read: reads the job log that its settings name, of a machine that the log may describe; from
            plain settings. None where jobs are of no such log.
    """

    workload: type[Any]
    from_world: Callable[[Any], Mapping[str, Any]] = lambda world: {}
    own: tuple[str, ...] = ()
    read: Callable[[Mapping[str, Any]], Any] | None = None

    @property
    def refused(self) -> Mapping[str, str]:
        """Fields that are no options in this world, and why, see `LogWorkload.refused`."""
        return getattr(self.workload, "refused", {})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its fields but the refused ones."""
        names = (entry.name for entry in fields(self.workload))
        return tuple(name for name in names if name not in self.refused)


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

    @classmethod
    def unnumbered(cls, name: str, make: Callable[[Any], Policy]) -> "Heuristic":
        """One whose name takes no number."""

        def checked(world: Any, argument: str) -> Policy:
            no_argument(name, argument)
            return make(world)

        return cls(checked)


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


@dataclass(frozen=True)
class CliOption:
    """A setting of a task that is an option of commands, too: ``--window 500``.

    Attributes:
        key: of the setting in a task: ``workload.window``.
        about: what it is, for --help.
        follows: other settings that go with it, by their keys, from the settings of a task that
            has it. What the user sets is left as it is.
        read: the value of the setting, from what the user wrote and a function that makes the task
            with all other options; by default the text is the value.
        metavar: what the option takes, for --help.
        draws_jobs: whether it says how jobs are drawn, so that it has no effect on a whole log.
    """

    key: str
    about: str
    follows: Callable[[Any], Mapping[str, Any]] = lambda task: {}
    read: Callable[[Any, Callable[[], Any]], Any] | None = None
    metavar: str = "VALUE"
    draws_jobs: bool = False


@dataclass(frozen=True)
class NamedJobsets:
    """Jobsets that are as they are, in place of drawn ones: a published comparison, a whole log.

    Attributes:
        about: what they are, in a few words.
        jobsets: gives them, from a task; they may hold jobs that a policy was trained on.
        columns: what differs from the columns of the task, from the jobsets.
    """

    about: str
    jobsets: Callable[[Any], Sequence[JobSet]]
    columns: Callable[[Sequence[JobSet]], Mapping[str, Value]] = lambda jobsets: {}


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
class Futures:
    """How the jobs that may arrive after an instant are sampled.

    Attributes:
        workload: where they come from: jobsets that begin after the instant, from the workload of a
            task and how far they reach. Of a log, it leaves out the jobs of other splits than
            training.
        arrived: how many jobs have arrived in each row of a simulator, ``(num_rows,)``.
        reach: how far they usually reach, in units of time or in jobs as the world has it.
        check: refuses jobs that cannot be mixed with sampled ones; from a jobset.
    """

    workload: Callable[[Any, int], Any]
    arrived: Callable[[Any], NDArray[Any]]
    reach: int
    check: Callable[[JobSet], None] = lambda jobset: None


@dataclass(frozen=True)
class Presentation:
    """How commands, tables and figures show tasks of a world.

    Attributes:
        columns: the head of a table's rows: what is to be known of a task.
        describe: says in words what the columns say.
        remarks: sentences that belong under a table of rows, from the rows.
        words: names the jobs of a task: ``load 70%``.
        time: writes a time of the world for people: ``7.5 h``, or a number of steps.
        time_unit: what a time of the world counts, as labels have it.
        axis: what a comparison varies.
        options: settings of a task that commands offer as options, by the option's name.
        steady: options and the warm-up, in units of time, of a comparison whose user says neither;
            from a task. In short windows it pays to keep jobs waiting.
        guarded: options of a guard whose user does not say them, from a task.
    """

    columns: Callable[[Any], Mapping[str, Value]] = lambda task: {}
    describe: Callable[[Mapping[str, Any]], str] = lambda columns: ""
    remarks: Callable[[Sequence[Mapping[str, Any]]], Sequence[str]] = lambda rows: ()
    words: Callable[[Any], str] = lambda task: task.name
    time: Callable[[float], str] = "{:,.1f}".format
    time_unit: str = "steps"
    axis: Axis | None = None
    options: Mapping[str, CliOption] = field(default_factory=dict)
    steady: Callable[[Any], tuple[Mapping[str, Any], int]] = lambda task: ({}, 0)
    guarded: Callable[[Any], Mapping[str, Any]] = lambda task: {}


@dataclass(frozen=True)
class Environments:
    """What Gymnasium shows of a world.

    Attributes:
        ids: options of the Gymnasium environments by their ids. To register the world enters them
            in Gymnasium. One that changes its behavior gets a new id: published results stay
            comparable.
        observations: what an environment can show, from the world; the first is the default.
            ``state``, ``features`` and ``flat`` are entered behind a world's own.
        masks: which actions make sense, from the world, states and, if given, an array to write;
            the first is the default. If none is given, those that the features allow.
        draw: makes an RGB picture of a row of a simulator.
        agents: whether several agents decide in an episode, each by an action of its own.
        loses_jobs: whether an episode may end by itself with unfinished jobs, from the world.
        returns_cost: whether the return of an episode that finishes all jobs is minus what its
            schedule costs under the objective, from the world.
    """

    ids: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    observations: Registry[Callable[[Any], Observation]] = field(
        default_factory=lambda: Registry("observation")
    )
    masks: Registry[Callable[..., Mask]] = field(default_factory=lambda: Registry("mask"))
    draw: Callable[[Any, int], NDArray[np.uint8]] | None = None
    agents: bool = False
    loses_jobs: Callable[[Any], bool] = lambda world: False
    returns_cost: Callable[[Any], bool] = lambda world: True

    def __post_init__(self) -> None:
        derived = {
            "state": state_observation,
            "features": features_observation,
            "flat": flat_observation,
        }
        for name, make in derived.items():
            if name not in self.observations.names():
                self.observations.register(name)(make)
        if not self.masks.names():
            self.masks.register("allowed")(allowed_mask)


@dataclass(frozen=True)
class Training:
    """How policies are trained in a world.

    Attributes:
        objective: what is learned where a config does not say it.
        references: names of the heuristics of which the best is what a guard compares side metrics
            with, from the world; if there are none, those are the baselines.
        families: jobsets by name that a policy for worlds of any size is trained on, each with the
            world that it runs in; drawn from the world whose other options hold, a number of jobs
            and a generator.
        site_families: the same of families that have windows of job logs, too; from the keywords
            ``logs`` (paths), ``leave_out`` (names), ``generated`` (share) and ``bound``. Their
            functions are called with the split first, because no two splits share a job.
        transfers: fields of the world in which a policy may meet another value than it was trained
            with; in all others they have to agree.
        policies: trained policies that come with metasched by name: their folders, as
            `rllib_configs.policy_files` reads them.
        discount: of a unit of time, by which the rewards of a world discount already what comes
            between two decisions (a semi-MDP's); from the world. Training must not do it again.
        check_task: refuses tasks that make no sense.
    """

    objective: str = "slowdown"
    references: Callable[[Any], tuple[str, ...]] = lambda world: ()
    families: Mapping[str, Callable[[Any, int, np.random.Generator], tuple[Any, JobSet]]] = field(
        default_factory=dict
    )
    site_families: Mapping[
        str, Callable[..., Callable[[Split, Any, int, np.random.Generator], tuple[Any, JobSet]]]
    ] = field(default_factory=dict)
    transfers: tuple[str, ...] = ()
    policies: Mapping[str, Path] = field(default_factory=dict)
    discount: Callable[[Any], float] = lambda world: 1.0
    check_task: Callable[[Any], None] = lambda task: None


@dataclass(frozen=True)
class Tools:
    """What else can be done in a world.

    Attributes:
        optimum: how the best schedule is found in hindsight, if anybody knows.
        protocols: jobsets by name that policies can be compared on beside unseen ones.
        warm: runs once what is compiled and what no rule, step or observation calls, as what
            learns; from a small world and some of its jobsets. See `cluster_env.warm`.
        futures: how later jobs are sampled, for `cluster_env.evaluation.lookahead`.
        bound: makes a rule that reads what each job costs under an `Objective`, which no state
            shows.
    """

    optimum: Optimum | None = None
    protocols: Mapping[str, NamedJobsets] = field(default_factory=dict)
    warm: Callable[[Any, Sequence[JobSet]], None] = lambda world, jobsets: None
    futures: Futures | None = None
    bound: Callable[[Any], Policy] | None = None


@dataclass(frozen=True)
class WorldSpec:
    """All that there is to know of a world by name: its one registration.

    Attributes:
        world: the dataclass; its fields are the settings of ``task.world``.
        workloads: distributions over its jobsets; their fields are those of ``task.workload``.
            The first is the default.
        heuristics: rules by name.
        baselines: heuristics whose best result divides costs; the first is what returns are
            measured in while training.
        metrics: names of what is measured of a schedule; the first is the headline.
        side_metrics: metrics that stand beside the headline in every table, because a better
            headline may be bought with them; and by what share each may be worse than a
            baseline's in a guard.
        variants: options of the world by name that make other code run than its defaults do.
            Tests hold every world to its promises in all of them.
    """

    world: type[Any]
    workloads: Registry[WorkloadSpec] = field(default_factory=lambda: Registry("workload"))
    heuristics: Registry[Heuristic] = field(default_factory=lambda: Registry("heuristic"))
    baselines: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("completion_time", "makespan", "utilization")
    side_metrics: Mapping[str, float] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    presentation: Presentation = field(default_factory=Presentation)
    environments: Environments = field(default_factory=Environments)
    training: Training = field(default_factory=Training)
    tools: Tools = field(default_factory=Tools)

    @property
    def headline(self) -> str:
        """Name of the metric that counts where an objective says nothing else."""
        return self.metrics[0]


class _Worlds(Registry[WorldSpec]):
    """Worlds by name, whose environments Gymnasium knows as soon as they are registered."""

    def register(self, name: str) -> Callable[[WorldSpec], WorldSpec]:
        """Returns a decorator that enters a world, and the ids of its environments in Gymnasium."""
        enter_spec = super().register(name)

        def enter(spec: WorldSpec) -> WorldSpec:
            enter_spec(spec)
            for env_id, options in spec.environments.ids.items():
                if env_id not in gymnasium.registry:
                    gymnasium.register(
                        id=env_id,
                        # As text, because environments stand above the core.
                        entry_point="cluster_env.envs.cluster:ClusterEnv",
                        vector_entry_point="cluster_env.envs.vector:ClusterVectorEnv",
                        kwargs=dict(options),
                    )
                elif gymnasium.registry[env_id].kwargs != dict(options):
                    raise ValueError(f"environment '{env_id}' is registered twice")
            return spec

        return enter


WORLDS: Registry[WorldSpec] = _Worlds("world")
"""Worlds by name; `cluster_env.worlds` enters those that come with metasched."""

TRAINING_DATA: Registry[Sequence[str]] = Registry("training data of")
"""The job logs that policies of others have seen, by the policies' names; no log for a rule, or for
what was trained on generated jobs alone."""


def environment_ids() -> tuple[str, ...]:
    """The ids of all environments of all registered worlds."""
    return tuple(name for world in WORLDS.names() for name in WORLDS.get(world).environments.ids)


def build_world(option: World | str | Mapping[str, object]) -> World:
    """A world as its users name it: by name, or by options with the name under ``kind``.

    Raises:
        InputError: for an unknown name or option, or an impossible value.
    """
    if isinstance(option, str):
        option = {"kind": option}
    if not isinstance(option, Mapping):
        return option
    options = dict(option)
    spec = WORLDS.get(str(options.pop("kind", "")))
    world: World = from_plain(spec.world, options, "option of the world")
    require_option_types(world)
    return world


def spec_of(world: World) -> WorldSpec:
    """The registration of a world.

    Raises:
        InputError: if it was not registered.
    """
    return WORLDS.get(world.kind)


def get_heuristic(name: str, world: World) -> Policy:
    """A heuristic of a world by its name, or its name and number: ``sjf``, ``tetris:0.005``.

    Raises:
        InputError: if there is no such heuristic, or its number is out of range.
    """
    rule, _, argument = name.partition(":")
    return spec_of(world).heuristics.get(rule).make(world, argument)
