"""Slurm's commands, called without a shell; nothing but the standard library is imported.

So the watchdog starts in a moment, and what breaks an import of ours does not keep it from working.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Sequence

TIMEOUT_S = 30.0
AT_ONCE = 100
"""Jobs that one command names."""

HELD_BY_USER = "JobHeldUser"
"""Reason of jobs that a steerer, a plugin or the user holds. What an administrator holds has
another, and is nobody else's to release."""


_JOB = re.compile(r"\d{1,10}(_\d{1,10})?")


class SiteAway(RuntimeError):
    """The site does not answer, or not in time; it may come back."""


class Refused(SiteAway):
    """A command ended with an error: the site is away, or does not do what was asked for."""


class Forbidden(Refused):
    """The account that asks may not do that."""


_DENIED = ("invalid user id", "permission denied")


def is_job(text: str) -> bool:
    """Whether a text is the number of a job, or of an element of an array: ``17``, ``17_3``."""
    return _JOB.fullmatch(text) is not None


def call(program: str, *arguments: str, text: str = "", timeout_s: float = TIMEOUT_S) -> str:
    """What a program of Slurm prints.

    Args:
        program: found on PATH.
        arguments: one by one; no shell ever sees them.
        text: what it reads.
        timeout_s: seconds after which it is killed.

    Raises:
        Refused: if it fails.
        Forbidden: if it says that the account may not do that.
        SiteAway: if it is missing or takes too long.
    """
    environment = {**os.environ, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            [program, *arguments],
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SiteAway(f"{program} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise SiteAway(f"{program} cannot be called: {error.strerror}") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        denied = any(words in done.stderr.lower() for words in _DENIED)
        how = Forbidden if denied else Refused
        raise how(f"{program} failed: {' '.join(lines[-1].split())[:200]}")
    return done.stdout


def change(action: str, jobs: Sequence[str], timeout_s: float = TIMEOUT_S) -> int:
    """Does something to jobs: ``release``, ``uhold``; returns how many commands were refused.

    A job that is gone by now is refused, and the next look at the queue shows what became of it.

    Raises:
        SiteAway: if the site does not answer in time.
        Forbidden: if the account may not do that to some of the jobs; it is done to the others.
    """
    refused, forbidden = 0, None
    for first in range(0, len(jobs), AT_ONCE):
        named = [job for job in jobs[first : first + AT_ONCE] if is_job(job)]
        if not named:
            continue
        try:
            call("scontrol", action, ",".join(named), timeout_s=timeout_s)
        except Forbidden as error:
            forbidden = error
        except Refused:
            refused += 1
    if forbidden:
        raise forbidden
    return refused


def held_jobs(partitions: Iterable[str]) -> list[str]:
    """Numbers of the jobs that are held, but not by an administrator; of all partitions if none.

    Raises:
        SiteAway: if the site does not answer.
    """
    chosen = ["-p", ",".join(partitions)] if partitions else []
    rows = call("squeue", "-h", "-r", "-t", "PENDING", *chosen, "-o", "%i %r").splitlines()
    pairs = [row.split(" ") for row in rows]
    return [pair[0] for pair in pairs if pair[1:] == [HELD_BY_USER] and is_job(pair[0])]
