"""Which jobs a Slurm holds, and what is done to them; it imports the standard library alone."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress

from tune_jobs.site.commands import SQUEUE_TIMEOUT_S, TIMEOUT_S, Forbidden, Refused, SiteAway, call

AT_ONCE = 100
"""Jobs that one command names."""

HELD_BY_USER = "JobHeldUser"
"""Reason of jobs that a steerer, a plugin or the user holds. What an administrator holds has
another, and is nobody else's to release."""

_JOB = re.compile(r"\d{1,10}(_\d{1,10})?")
_ROW = re.compile(r"(\d\S*) (\S+) (.+)")  # job, its partitions, reason
_RECORD = re.compile(r"^JobId=(\d{1,10}) ", re.MULTILINE)
_STATE = re.compile(r"JobState=(\S+) Reason=(\S+)")
_PARTITIONS = re.compile(r" Partition=(\S+)")
_SHOW_JOBS = ("scontrol", "-a", "-o", "show", "job")


def is_job(text: str) -> bool:
    """Whether a text is the number of a job, or of an element of an array: ``17``, ``17_3``."""
    return _JOB.fullmatch(text) is not None


def is_in(named: str, partitions: Collection[str]) -> bool:
    """Whether a job or node of some partitions, ``a,b``, counts: of all if none is chosen."""
    return not partitions or any(name in partitions for name in named.split(","))


def change(action: str, jobs: Sequence[str], timeout_s: float = TIMEOUT_S) -> list[str]:
    """Does something to jobs: ``release``, ``uhold``; returns an error of each refused command.

    A job that is gone by now is refused, and the next look at the queue shows what became of it.

    Raises:
        SiteAway: if the site does not answer in time.
        Forbidden: if the account may not do that to some of the jobs; it is done to the others.
    """
    refusals, forbidden = [], None
    for first in range(0, len(jobs), AT_ONCE):
        named = [job for job in jobs[first : first + AT_ONCE] if is_job(job)]
        if not named:
            continue
        try:
            call("scontrol", action, ",".join(named), timeout_s=timeout_s)
        except Forbidden as error:
            forbidden = error
        except Refused as error:
            refusals.append(str(error))
    if forbidden:
        raise forbidden
    return refusals


def held_jobs(partitions: Collection[str], squeue_timeout_s: float = SQUEUE_TIMEOUT_S) -> list[str]:
    """Numbers of the jobs that are held, but not by an administrator; of all partitions if none.

    If squeue fails, or prints nothing that can be read, scontrol is asked.

    Raises:
        SiteAway: if neither answers.
    """
    try:
        text = call("squeue", "-h", "-r", "-a", "-o", "%i %P %r", timeout_s=squeue_timeout_s)
    except SiteAway as error:
        try:
            return held_by_scontrol(partitions)
        except SiteAway:
            raise error from None
    rows = [row.groups() for line in text.split("\n") if (row := _ROW.fullmatch(line.strip()))]
    if not rows:
        return held_by_scontrol(partitions)
    return [
        job
        for job, named, reason in rows
        if reason == HELD_BY_USER and is_job(job) and is_in(named, partitions)
    ]


def held_by_scontrol(partitions: Collection[str], timeout_s: float = TIMEOUT_S) -> list[str]:
    """The same by scontrol alone, with an array as one job.

    Its records hold names and paths that users write freely, and that may look like records. So
    each job is asked for once more by itself: a forged state then stands beside the true one.

    Raises:
        SiteAway: if it does not answer.
    """
    _, *parts = _RECORD.split(call(*_SHOW_JOBS, timeout_s=timeout_s))
    records = zip(parts[::2], parts[1::2], strict=True)
    jobs = dict.fromkeys(job for job, record in records if _is_held(record, partitions))
    held = []
    for job in jobs:
        with suppress(Refused):  # it is gone by now
            if _is_held(call(*_SHOW_JOBS, job, timeout_s=timeout_s), partitions):
                held.append(job)
    return held


def _is_held(record: str, partitions: Collection[str]) -> bool:
    reasons = {reason for state, reason in _STATE.findall(record) if state == "PENDING"}
    named = ",".join(_PARTITIONS.findall(record))
    return reasons == {HELD_BY_USER} and " HetJobId=" not in record and is_in(named, partitions)
