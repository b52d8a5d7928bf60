"""Options of what is done at a site, with a live Slurm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tune_jobs.commands.flags import (
    Argument,
    CountOrZero,
    Flag,
    OptionValue,
    Positive,
    PythonOnly,
    Several,
    Time,
)
from tune_jobs.commands.shared import FILE

MAX_WAIT = Flag(
    "Jobs that have waited longer, such as 5d, go first in the policy's plan, with room reserved "
    "for them; 0: never.",
    metavar="TIME",
)
TIME, SOME_TIME = Time(), Time(0.001)

Policy = Annotated[str, Argument("Policy that starts the jobs.", "POLICY|RUN")]
Partitions = Annotated[
    Sequence[str],
    Flag(
        "Only jobs and nodes of this partition; can be repeated. By default all.",
        "partition",
        metavar="NAME",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Futures:
    """How start times are foreseen."""

    heading: ClassVar[str] = "Start times"

    num_futures: Annotated[Several, Flag("Times that the queue is simulated.", typed=False)] = 100
    num_instants: Annotated[
        CountOrZero,
        Flag(
            "Moments of the log at which start times are checked once, to correct the intervals; "
            "0: no correction.",
            typed=False,
        ),
    ] = 200


@dataclass(frozen=True, kw_only=True)
class Starts(Futures):
    """Jobs that wait at a live Slurm, for Python."""

    policy: Policy = field(kw_only=False)
    past: Annotated[
        str | Path,
        PythonOnly(
            "Log of the site, such as an export of sacct: how far estimates were off, what arrives."
        ),
    ] = field(kw_only=False)
    partitions: Partitions = ()
    repeat: Annotated[
        str | Path | None,
        PythonOnly("Contact no Slurm: take the last state in a record of shadow."),
    ] = None
    max_wait: Annotated[str, MAX_WAIT] = "0"
    task_options: Annotated[
        dict[str, str | float | bool],
        PythonOnly("How the log is read, as keywords: time_zone='UTC'."),
    ] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Live:
    """A live site: what is looked at, how often, and where lines go."""

    heading: ClassVar[str] = "Site"

    tick_s: Annotated[
        float,
        Flag(
            "Time between two ticks; in each, the policy decides on the queue.",
            metavar="TIME",
            type=SOME_TIME,
        ),
    ] = 10.0
    num_ticks: Annotated[
        CountOrZero, Flag("Number of ticks; with 0 the command runs until you stop it.")
    ] = 0
    partitions: Partitions = ()
    most_starts: Annotated[
        CountOrZero, Flag("Guard: the most jobs to start in one tick; 0: no limit.")
    ] = 50
    hash_users: Annotated[bool, Flag("Record hashes of user names.")] = False
    out: Annotated[
        Path | None,
        Flag(
            "File to append the lines to, compressed if its name ends in .gz; by default they are "
            "printed.",
            type=FILE,
        ),
    ] = None
    repeat: Annotated[
        Path | None,
        Flag(
            "Contact no Slurm: repeat the decisions on the states of this record, and compare them "
            "bit by bit.",
            metavar="FILE",
            type=FILE,
        ),
    ] = None
    simulate: Annotated[
        Path | None,
        Flag(
            "Contact no Slurm: simulate a site with the jobs of LOG and --processors; metasched "
            "replay --help lists more of its options.",
            metavar="LOG",
            type=FILE,
        ),
    ] = None
    speed: Annotated[Positive, Flag("With --simulate: simulated seconds in one second.")] = 60.0
    task_options: Mapping[str, OptionValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Shadow(Futures, Live):
    """A policy that advises beside a live site."""

    policy: Policy
    max_wait: Annotated[str, MAX_WAIT] = "0"
    starts: Annotated[
        Path | None,
        Flag(
            "Also foresee when each waiting job will start, by a log of the site such as an export "
            "of sacct; with --ticks 1 just once.",
            metavar="LOG",
            type=FILE,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Steer(Live):
    """A policy in charge of the queue of a live site."""

    policy: Annotated[str | None, Argument("Policy that starts the jobs.", "[POLICY|RUN]")] = None
    max_wait: Annotated[str, MAX_WAIT] = "5d"
    mode: Annotated[
        Literal["release", "priority"],
        Flag(
            "release: release each held job when it is to start. priority: set the jobs' "
            "priorities, and let Slurm start them (priority/multifactor only)."
        ),
    ] = "release"
    act: Annotated[bool, Flag("Act on the decisions; without --act they are only recorded.")] = (
        False
    )
    rehold_s: Annotated[
        float,
        Flag(
            "Hold a released job again that Slurm has not started after this time; until then no "
            "other is released. 0: never, and do not wait.",
            metavar="TIME",
            type=TIME,
        ),
    ] = 30
    hold_new: Annotated[
        bool,
        Flag("Hold jobs that were submitted without a hold. A submission plugin does this better."),
    ] = False
    until_empty: Annotated[bool, Flag("End as soon as no job runs or waits.")] = False
    watchdog_s: Annotated[
        float,
        Flag(
            "After this time without a completed tick, all held jobs are released.",
            metavar="TIME",
            type=SOME_TIME,
        ),
    ] = 300.0
    as_root: Annotated[
        bool, Flag("Act as root, if there is no account with AdminLevel=Operator.")
    ] = False
    release_all: Annotated[bool, Flag("Release all held jobs and exit.")] = False
