"""What ``sacct --json`` writes, as the rows that ``sacct --parsable2`` has of the same jobs.

Fields are nested, and numbers that may be unknown are objects (``set``, ``infinite``, ``number``)
since data_parser v0.0.39; both forms are read. Everything else is decided where rows are read.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from cluster_env.core.errors import InputError
from cluster_env.workloads.clock import Clock
from cluster_env.workloads.records import BadRow, Findings, Record
from cluster_env.workloads.slurm.sacct import STEP, SacctRow, require_one_cluster

_JOBS = re.compile(r'"jobs"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_ENDED = re.compile(r"[^}\]]*\Z")


def is_begin(line: str) -> bool:
    """Whether a file that begins with this line could be JSON."""
    return line.startswith("{")


def read_jobs(path: Path, text: TextIO, clock: Clock, findings: Findings) -> Iterator[Record]:
    """Records of all jobs; the others are counted in ``findings``. A job counts as a row.

    Raises:
        InputError: if the file has no list of jobs, is broken before its end, or holds jobs of
            several clusters; it names the line.
    """
    whole = text.read()
    begin = _JOBS.search(whole)
    if begin is None:
        raise InputError(
            f"{path} is JSON without a list of jobs; export with sacct --json, or with "
            f"sacct --parsable2"
        )
    clusters: set[str] = set()
    for line, job in _objects(path, whole, begin.end(), findings):
        findings.rows += 1
        try:
            if not isinstance(job, dict):
                raise BadRow(path, line, "a job must be an object with job_id, state and time")
            row = SacctRow(path, line, _cells(path, line, job))
            if row.is_step:
                findings.drop(STEP, line)
                continue
            record = row.record(clock, findings)
        except BadRow as bad:
            findings.spoil(bad)
            clock.doubts()  # of a row that counts for nothing else
            continue
        clusters.add(row.get("cluster"))
        require_one_cluster(path, line, clusters, row.get("cluster"))
        yield record


def _objects(path: Path, text: str, place: int, findings: Findings) -> Iterator[tuple[int, Any]]:
    """Line and value of each element of a list, without the list as a whole in memory."""
    # No count has so many digits, and Python refuses to read thousands of them.
    decoder = json.JSONDecoder(parse_int=lambda text: int(text) if len(text) < 19 else float(text))
    line, counted = 1, 0
    while True:
        between = _BETWEEN.match(text, place)
        place = between.end() if between else place
        line, counted = line + text.count("\n", counted, place), place
        if text.startswith("]", place):
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError) as error:
            # A file that was cut off lacks its last job; broken elsewhere, who knows how many.
            at = getattr(error, "pos", place)
            if not _ENDED.match(text, at):
                raise InputError(
                    f"{path}, line {line + text.count(chr(10), counted, at)}: this is no "
                    "JSON, so the rest cannot be read; export it again with sacct --json"
                ) from None
            if text[place:].strip():
                findings.rows += 1
                findings.spoil(BadRow(path, line, "the job is cut off at the end of the file"))
            return
        yield line, value


def _cells(path: Path, line: int, job: Mapping[str, Any]) -> dict[str, str]:
    """The cells that ``sacct --parsable2`` has of a job, by names in small letters."""
    missing = next((name for name in ("job_id", "state", "time") if name not in job), None)
    if missing:
        raise BadRow(path, line, f"the job lacks {missing}")
    time, array, het = (_part(job, name) for name in ("time", "array", "het"))
    allocated = _resources(_part(job, "tres").get("allocated"))
    asked = _resources(_part(job, "tres").get("requested"))
    state = job["state"]
    current = state.get("current") if isinstance(state, dict) else state
    limit = time.get("limit")
    infinite = isinstance(limit, dict) and limit.get("infinite")
    cells = {
        "jobidraw": job["job_id"],
        "jobid": _shown(job, array, het),
        "state": current[0] if isinstance(current, list) and current else current,
        "submit": time.get("submission"),
        "eligible": time.get("eligible"),
        "start": time.get("start"),
        "end": time.get("end"),
        "elapsedraw": time.get("elapsed"),
        "timelimitraw": "UNLIMITED" if infinite else limit,
        "reqcpus": _part(job, "required").get("CPUs"),
        "alloccpus": allocated.get("cpu"),
        "nnodes": job.get("allocation_nodes") or allocated.get("node"),
        "alloctres": ",".join(f"{name}={count}" for name, count in allocated.items()),
        "reqtres": ",".join(f"{name}={count}" for name, count in asked.items()),
        "user": job.get("user") or _part(job, "association").get("user"),
        "account": job.get("account") or job.get("group"),
        "partition": job.get("partition"),
        "cluster": job.get("cluster"),
        "qos": job.get("qos"),
        "constraints": job.get("constraints"),
        "reservation": _part(job, "reservation").get("name"),
        "submitline": job.get("submit_line"),
        "arraytaskthrottle": _throttle(array),
    }
    return {name: _text(value) for name, value in cells.items()}


def _throttle(array: Mapping[str, Any]) -> Any:
    """Most elements of an array that run at once."""
    limits = _part(_part(array, "limits"), "max")
    return _part(limits, "running").get("tasks")


def _shown(job: Mapping[str, Any], array: Mapping[str, Any], het: Mapping[str, Any]) -> str:
    """The number as sacct shows it: of elements of arrays 18_2, of parts of jobs 20+1."""
    number = _text(job["job_id"])
    if _text(array.get("job_id")) not in ("", "0"):
        task = _text(array.get("task_id")) or f"[{_text(array.get('task'))}]"
        return f"{_text(array['job_id'])}_{task}"
    if _text(het.get("job_id")) not in ("", "0"):
        return f"{_text(het['job_id'])}+{_text(het.get('job_offset')) or '0'}"
    return number


def _part(job: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = job.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: Any) -> str:
    """A value as sacct would print it; nothing for a number that is not set."""
    if isinstance(value, dict):
        return _text(value.get("number")) if value.get("set", True) else ""
    return "" if value is None or isinstance(value, (list, bool)) else str(value)


def _resources(entries: Any) -> dict[str, str]:
    """Counts of trackable resources by name: ``cpu``, ``mem`` (MiB), ``gres/gpu:a100``."""
    counts = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("type") and entry.get("count") is not None:
            name = "/".join(str(entry[key]) for key in ("type", "name") if entry.get(key))
            counts[name] = _text(entry["count"])
    return counts
