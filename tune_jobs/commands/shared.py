"""Options that several commands have, as base classes and annotations of fields.

A field that may be given by its place in Python comes in the order of the bases, the last one
first, as dataclasses collect them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, cast

import click

from tune_jobs.commands.flags import (
    Argument,
    Count,
    CountOrZero,
    Flag,
    Numbers,
    OptionValue,
    Positive,
    PythonOnly,
    Seed,
    Several,
)
from tune_jobs.terminal.options import OutPath, keep_force

if TYPE_CHECKING:
    from cluster_env.task import Task
    from rllib_configs.config.changes import Changes
    from rllib_configs.config.schema import ExperimentConfig

T = TypeVar("T")

JOBS, PROCESSES = "Jobs and objective", "Processes"

TASK_OPTIONS = "Options of the world, by name. Each may be given as a keyword, too: processors=256."

Decode = Literal["sample", "argmax"]
Keep = Literal["best", "last"]

Objective = Annotated[
    str | None,
    Flag(
        "Objective that ranks the policies, also a mixture 'W NAME + W NAME'; by default the "
        "config's.",
        typed=False,
    ),
]
Warmup = Annotated[
    CountOrZero | None,
    Flag(
        "Leave out the jobs that arrive in so many steps at both ends of the arrival period; by "
        "default 0, for recorded jobs a sixth."
    ),
]
At = Annotated[
    Sequence[float],
    Flag(
        "Values of the setting that comparisons of the world vary, such as 0.7,1.1; by default the "
        "config's. A log has its own.",
        metavar="VALUE,...",
        type=Numbers(),
    ),
]
Force = Annotated[bool, Flag("Replace the file if it is there.", callback=keep_force)]
NumRunners = Annotated[
    CountOrZero, Flag("Processes that evaluate policies in parallel; 0 evaluates in this process.")
]
Progress = Annotated[bool, PythonOnly("Whether to show on stderr how far it is.")]
AsJson = Annotated[bool, Flag("Print everything as JSON.", "json")]
Tables = Annotated[
    str | Path | None,
    Flag("Folder for all tables (CSV) and figures of them.", type=OutPath(file_okay=False)),
]
PoliciesSeed = Annotated[Seed, Flag("Seed of the policies' random numbers.", typed=False)]
DecodeLog = Annotated[Decode, Flag("How learned policies choose.", typed=False)]
HeldOut = Annotated[
    Count, Flag("Held-out jobsets of a task; costs are means over them.", "evaluate")
]
OUT_FOLDER = OutPath(file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


@dataclass(frozen=True, kw_only=True)
class World:
    """World, jobs and objective."""

    heading: ClassVar[str] = JOBS

    on: Annotated[
        "Task | ExperimentConfig | str | Path | None",
        Flag(
            "World, jobs and objective; by default those of the first run, else those of deeprm.",
            "config",
            metavar="PRESET|FILE",
        ),
    ] = field(default=None, kw_only=False)
    changes: Annotated[
        "Changes",
        Flag(
            "Change a setting, for instance task.objective=makespan.",
            "set",
            metavar="KEY=VALUE",
            several=True,
        ),
    ] = ()
    task_options: Annotated[Mapping[str, OptionValue], PythonOnly(TASK_OPTIONS)] = field(
        default_factory=dict
    )


@dataclass(frozen=True, kw_only=True)
class Evaluation(World):
    """What policies are evaluated on."""

    heading: ClassVar[str] = JOBS

    warmup: Warmup = None
    num_jobsets: Annotated[Count, Flag("Unseen jobsets at each value.")] = 1000
    num_episodes: Annotated[Count, Flag("Episodes of each jobset.", typed=False)] = 1
    seed: Annotated[Seed, Flag("Seed of the jobsets and of the policies' random numbers.")] = 0
    decode: Annotated[
        Literal["sample", "argmax", "tuned"],
        Flag(
            "How learned policies choose: sample draws; argmax takes the likeliest action, and may "
            "leave jobs waiting for ever; tuned is argmax with an eagerness to start jobs tuned on "
            "validation jobsets."
        ),
    ] = "sample"
    objective: Objective = None
    limits: Annotated[
        Sequence[str] | Mapping[str, float] | None,
        Flag(
            "Share by which a metric of a guarded policy may be worse than the reference's, for "
            "instance wait=0.5; off removes the limit. Can be repeated.",
            "limit",
            metavar="METRIC=SHARE",
            several=True,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Runners:
    """Processes that evaluate policies."""

    heading: ClassVar[str] = PROCESSES

    num_runners: NumRunners = 0


@dataclass(frozen=True, kw_only=True)
class ClusterRunners(Runners):
    """Those that a Ray cluster may have."""

    heading: ClassVar[str] = PROCESSES

    address: Annotated[
        str | None,
        Flag(
            "Ray cluster for the runners, or auto; by default RAY_ADDRESS, else they run on this "
            "machine.",
            typed=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Log:
    """A log, and what is said of it."""

    heading: ClassVar[str] = "Log"

    path: Annotated[
        str | Path, Argument("A log, or the name of one that ships with metasched.", "FILE")
    ] = field(kw_only=False)
    changes: Annotated[
        "Changes",
        Flag(
            "Change a setting of the machine or of reading the log, for instance "
            "task.workload.stretch=0.5.",
            "set",
            metavar="KEY=VALUE",
            several=True,
        ),
    ] = ()
    hash_users: Annotated[bool, Flag("Replace users and groups by hashes in all output.")] = False
    task_options: Annotated[Mapping[str, OptionValue], PythonOnly(TASK_OPTIONS)] = field(
        default_factory=dict
    )

    @property
    def file(self) -> Path:
        """The path of the log."""
        return Path(self.path)

    @property
    def settings(self) -> tuple[str, ...]:
        """What is changed, and that names are hashed, if that was asked for."""
        hashed = ["task.workload.hash_users=true"] if self.hash_users else []
        return (*texts_of(self.changes), *hashed)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What a step of adaptation plays, and what is measured behind it."""

    heading: ClassVar[str] = "Adaptation"

    num_episodes: Annotated[Several, Flag("Episodes of a step, over its jobsets.")] = 20
    num_jobsets: Annotated[Count, Flag("Jobsets of a step.")] = 4
    rate: Annotated[
        Positive | None,
        Flag(
            "Inner rate of all parameters. By default the rates that the run learned, else that of "
            "its config, else a usual one."
        ),
    ] = None
    decode: Annotated[
        Decode,
        Flag("How policies act: argmax takes the likeliest action, sample draws one.", typed=False),
    ] = "argmax"


@dataclass(frozen=True, kw_only=True)
class Training:
    """Where training happens, and where it is recorded."""

    heading: ClassVar[str] = "Cluster and records"

    address: Annotated[
        str | None,
        Flag(
            "Ray cluster to train on, or auto; by default Ray is started on this machine.",
            metavar="HOST:PORT",
        ),
    ] = None
    track: Annotated[bool, PythonOnly("Whether to record in MLflow.")] = True
    tracking_uri: Annotated[
        str | None,
        Flag(
            "MLflow server or other database that gets a copy; by default MLFLOW_TRACKING_URI.",
            typed=False,
        ),
    ] = None


def texts_of(changes: "Changes") -> list[str]:
    """Changes as ``--set`` takes them."""
    if not isinstance(changes, Mapping):
        return list(changes)
    return [f"{key}={'null' if value is None else value}" for key, value in changes.items()]


def part_of(options: Any, kind: Callable[..., T], **more: Any) -> T:
    """Another dataclass of options, of what it shares with these, and of more."""
    names = [one.name for one in fields(cast("Any", kind))]
    shared = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return kind(**{**shared, **more})
