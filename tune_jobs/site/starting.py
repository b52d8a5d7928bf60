"""When the jobs that wait at a site will start, and how sure that is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from cluster_env.core.durations import duration, seconds_of
from cluster_env.core.errors import Failure, InputError
from cluster_env.workloads.formats import READ_OPTIONS
from rllib_configs.snapshot import RUNNING, WAITING, Queue, Snapshot, StartTime
from tune_jobs.commands.flags import OptionValue
from tune_jobs.commands.site import Starts
from tune_jobs.site.choosing import choose_foreseer
from tune_jobs.site.commands import SiteAway
from tune_jobs.site.journal import TICK, read_journal
from tune_jobs.site.placing import in_all
from tune_jobs.site.slurm import SlurmBackend, require_slurm
from tune_jobs.tables.columns import Column
from tune_jobs.tables.frames import frame_of
from tune_jobs.tables.printing import Sheet, folded, format_sheet
from tune_jobs.tables.report import Report

Foresee = Callable[[Snapshot], tuple[StartTime, ...]]

ASSUMPTIONS = (
    "Guaranteed, if no job runs for longer than its limit, none asks for a longer limit than the "
    "log and the queue have, jobs that are held or blocked now queue behind, nodes stay as they "
    "are, and Slurm starts what the policy starts."
)


def foresee_by(
    policy: str,
    past: Path,
    task_options: Mapping[str, OptionValue],
    max_wait_s: int,
    **options: Any,
) -> Foresee:
    """What foresees starts at a site.

    Args:
        policy: the one in charge.
        past: log of the site.
        task_options: of the command, as far as they say how the log is read.
        max_wait_s: bound on waits, 0 for none.
        options: how many futures and instants, see ``Foreseer``.

    Raises:
        InputError: if the log or the policy cannot be used.
    """
    by_name = {name.replace("_", "-"): name for name in READ_OPTIONS}
    read = {by_name[name]: text for name, text in task_options.items() if name in by_name}
    foreseer = choose_foreseer(policy, past, read, **options)

    def foresee(snapshot: Snapshot) -> tuple[StartTime, ...]:
        free = in_all(node.free for node in snapshot.nodes)
        running, waiting = snapshot.in_state(RUNNING), snapshot.in_state(WAITING)
        found: tuple[StartTime, ...] = foreseer.foresee(
            Queue(snapshot.time, free, running, waiting, max_wait_s), snapshot
        )
        return found

    return foresee


def report_starts(options: Starts) -> Report:
    """Looks once and tells when jobs start.

    Raises:
        InputError: if the log, the policy or the record cannot be used.
        Failure: if the site does not answer.
    """
    policy, repeat, task_options = options.policy, options.repeat, options.task_options
    bound = seconds_of(options.max_wait)
    if unused := [name for name in task_options if name.replace("-", "_") not in READ_OPTIONS]:
        raise InputError(
            f"--{unused[0]} describes a simulated site, but starts is about a real one; leave it "
            "out"
        )
    if repeat is None:
        require_slurm(otherwise=", or give a record, repeat=FILE")
    foresee = foresee_by(
        policy,
        Path(options.past),
        task_options,
        bound,
        num_futures=options.num_futures,
        num_instants=options.num_instants,
    )
    snapshot = _look(options.partitions) if repeat is None else _last_look(Path(repeat))
    found = foresee(snapshot)
    text = "No job waits that the policy could start."
    if found:
        bounded = any(one.latest is not None for one in found)
        under = ["\n".join(folded([ASSUMPTIONS]))] if bounded else []
        text = "\n\n".join([format_sheet(_sheet(found, snapshot, policy)), *under])
    rows = list(map(asdict, found))
    return Report(
        text=text,
        tables={"starts": partial(frame_of, rows)},
        data={"time": snapshot.time, "policy": policy, "starts": rows},
    )


def _look(partitions: Sequence[str]) -> Snapshot:
    try:
        return SlurmBackend(partitions).read().in_order()
    except SiteAway as error:
        raise Failure(f"the site does not answer: {error}") from None


def _last_look(path: Path) -> Snapshot:
    last = None
    for entry in read_journal(path):
        last = entry if entry["kind"] == TICK else last
    if last is None:
        raise InputError(f"{path} records no state of a site")
    return Snapshot.from_plain(last["snapshot"])


def _sheet(found: Sequence[StartTime], snapshot: Snapshot, policy: str) -> Sheet:
    """Times from now on, for people."""
    waits = {job.job: snapshot.time - job.eligible for job in snapshot.jobs}
    columns = {
        "job": Column("job"),
        "waited": Column("waited"),
        "site": Column("Slurm"),
        "median": Column("median"),
        "half": Column("50% between"),
        "most": Column("90% between"),
    }
    if any(one.latest is not None for one in found):
        columns["latest"] = Column("latest")
    if any(one.not_simulated for one in found):
        columns["lacks"] = Column("not simulated")

    def later(time: int | None) -> str:
        return "-" if not time else duration(max(time - snapshot.time, 0))

    def between(one: StartTime, low: int, high: int) -> str:
        return "-" if one.at is None else f"{later(one.at[low])} - {later(one.at[high])}"

    rows = [
        {
            "job": one.job,
            "waited": duration(max(waits[one.job], 0)),
            "site": later(one.expected),
            "median": later(one.at[2] if one.at else None),
            "half": between(one, 1, 3),
            "most": between(one, 0, 4),
            "latest": later(one.latest),
            "lacks": "; ".join(one.not_simulated),
        }
        for one in found
    ]
    title = f"Starts under {policy}, from now on"
    return Sheet("starts", title, tuple(columns), rows, own=columns)
