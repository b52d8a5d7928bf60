"""Options of comparisons, of guards, and of what chooses and joins."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tune_jobs.commands.flags import Argument, Flag, PythonOnly, Seed, Several
from tune_jobs.commands.shared import At, ClusterRunners, DecodeLog, Evaluation, Force, Progress
from tune_jobs.terminal.options import OutPath

if TYPE_CHECKING:
    from cluster_env.core.policy import Policy

LATER = (
    "Also show how the decision does on held-out jobsets, and whether it keeps its limits there. "
    "Of a log, these are the later weeks."
)


@dataclass(frozen=True, kw_only=True)
class _Policies:
    """Policies, by their names."""

    policies: Annotated[
        "Sequence[str | Path | Policy]",
        Flag(
            "Heuristics, run directories and globs of them; can be repeated. By default all "
            "heuristics of the world. rollout:POLICY:FUTURES improves a policy by playing on "
            "through sampled futures, which is slow.",
            metavar="NAME,...",
            several=True,
        ),
    ] = field(default=(), kw_only=False)


@dataclass(frozen=True, kw_only=True)
class Compare(ClusterRunners, Evaluation, _Policies):
    """A comparison of policies on the same unseen jobsets."""

    at: At = ()
    guard: Annotated[
        bool,
        Flag(
            "Add a guarded line for each learned policy: the policy where it is proven better than "
            "the best heuristic, and that heuristic elsewhere."
        ),
    ] = False
    protocols: Annotated[
        Sequence[str],
        Flag(
            "Jobsets to compare on: unseen (the default), and for a log also rlscheduler (ten "
            "published sequences of 1,024 jobs) and whole (the log as one jobset). Each has its "
            "own table.",
            "protocol",
            metavar="NAME,...",
        ),
    ] = ()
    progress: Progress = False


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A learned policy."""

    run: Annotated[
        str | Path, PythonOnly("Folder of a run, or the name of a pretrained policy.")
    ] = field(kw_only=False)


@dataclass(frozen=True, kw_only=True)
class Guard(ClusterRunners, Evaluation, _Run):
    """A decision between a learned policy and the best heuristic."""

    num_jobsets: Annotated[Several, PythonOnly("Validation jobsets to decide on.")] = 500
    decode: DecodeLog = "sample"
    later: Annotated[bool, PythonOnly(LATER)] = False
    out: Annotated[str | Path | None, PythonOnly("File for the decision, as JSON.")] = None
    force: Force = False
    progress: Progress = False


@dataclass(frozen=True, kw_only=True)
class Choose:
    """What runs that differ in their seed are judged on."""

    runs: Annotated[
        Sequence[str],
        PythonOnly("Their folders, globs of them, or names of pretrained policies."),
    ] = field(kw_only=False)
    num_jobsets: Annotated[Several, PythonOnly("Jobsets to judge them on.")] = 200
    seed: Annotated[Seed, PythonOnly("Seed of these jobsets, with which no run was trained.")] = (
        1000
    )
    out: Annotated[str | Path | None, PythonOnly("Folder for the best policy.")] = None


@dataclass(frozen=True, kw_only=True)
class Join:
    """Tables of one kind, to become one."""

    tables: Annotated[
        str,
        Argument("Their common path, with the name in braces where the paths differ.", "TABLE"),
    ] = field(kw_only=False)
    by: Annotated[str, Flag("Name of the new first column, and its value for each table.")] = field(
        kw_only=False
    )
    out: Annotated[
        str | Path, Flag("CSV file for the rows of all tables.", type=OutPath(dir_okay=False))
    ] = field(kw_only=False)
    force: Force = False
