"""The log of a made-up site as Slurm's sacct exports it, with waits."""

from collections.abc import Sequence
from pathlib import Path

HEAD = "JobIDRaw|JobID|JobName|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw"
HEAD += "|TimelimitRaw|ReqCPUS|AllocCPUS|AllocTRES"
BEGIN = 1_770_000_001

Job = tuple[int, int, int, int, int, int, str]
"""Arrival, wait, run, limit (seconds, whole minutes), processors, GPUs, user."""


def write_export(path: Path, jobs: Sequence[Job]) -> Path:
    """Writes jobs, each with a step behind it."""
    lines = [HEAD]
    for number, (arrival, wait, run, limit, processors, gpus, user) in enumerate(jobs, start=1):
        start = BEGIN + arrival + wait
        held = f"cpu={processors},node=1" + (f",gres/gpu={gpus}" if gpus else "")
        times = f"{BEGIN + arrival}|{BEGIN + arrival}|{start}|{start + run}|{run}"
        of_job = f"{limit // 60}|{processors}|{processors}|{held}"
        lines.append(f"{number}|{number}|job|{user}|bio|main|COMPLETED|{times}|{of_job}")
        lines.append(f"{number}.0|{number}.0|step||bio||COMPLETED|{times}||{processors}||{held}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_as_csv(path: Path, jobs: Sequence[Job]) -> Path:
    """Writes the same jobs as CSV."""
    names = "arrival,wait,duration,estimate,processors,gpus,user,group,queue"
    rows = [",".join(map(str, (BEGIN + job[0], *job[1:]))) + ",bio,main" for job in jobs]
    path.write_text("\n".join([names, *rows]) + "\n")
    return path
