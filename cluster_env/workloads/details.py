"""What logs say of jobs that only the description of a site makes use of, as columns.

They are whole numbers, int64 ``(num_jobs,)``, by these names; a log has those that say anything:

* ``job``: the log's own number, which a requeue or another year may repeat
* ``submitted``: seconds of the log's clock; `RecordedJobs.submit` is when a job became eligible
* ``failed``: 1 for a job that did not succeed
* ``partition``: number of the partition, of logs that have queues beside them
* ``qos``, ``reservation``, ``constraint``: numbers of names in `RecordedJobs.names`
* ``nodes``, ``exclusive``, ``array``, ``throttle``, ``after_ok``: see `records.Request`
* ``after``: numbers of jobs, ``(num_jobs, k)``; -1 for none
* ``earlier_run``: line of the run before a requeue, of which the job begins again; 0 for none
* ``think_s``: seconds from their ends to the submission
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.workloads.recorded import NOTHING, RecordedJobs, to_ids
from cluster_env.workloads.records import Record

NAMED = ("qos", "reservation", "constraint")
"""Columns of numbers that stand for names."""

MOST_AFTER = 16
"""Predecessors of a job that are kept."""

TEXT_COLUMNS = (
    *(*NAMED, "nodes", "exclusive", "array", "throttle"),
    *("job", "after", "after_ok", "think_s", "failed"),
)
"""Columns of a CSV; a job and its array may have any names, and ``after`` names jobs, separated by
spaces. What is no whole number in the others counts as 0."""

_NUMBERS = ("nodes", "exclusive", "array", "throttle", "after_ok")
_SUCCEEDED = {"COMPLETED", "ENDED"}

Columns = dict[str, NDArray[np.int64]]


def details_of(records: Sequence[Record]) -> tuple[Columns, dict[str, NDArray[np.str_]]]:
    """Columns of records, and the names that their numbers stand for."""
    columns: Columns = {
        "job": np.array([record.job for record in records], np.int64),
        "submitted": np.array([record.submit for record in records], np.int64),
        "failed": np.array([record.state not in _SUCCEEDED for record in records], np.int64),
    }
    # Most jobs ask for what others ask for: columns are those of different requests.
    place: dict[int, int] = {}
    codes = [place.setdefault(id(record.request), len(place)) for record in records]
    index = np.array(codes, np.int64)
    _, first = np.unique(index, return_index=True)
    requests = [records[k].request for k in first]
    for name in _NUMBERS:
        numbers = np.array([getattr(request, name) for request in requests], np.int64)
        if numbers.any():
            columns[name] = numbers[index]
    names: dict[str, NDArray[np.str_]] = {}
    for name in NAMED:
        texts = [getattr(request, name) for request in requests]
        if any(texts):
            numbers, names[name] = to_ids(np.array(texts))
            columns[name] = numbers[index]
    most = min(max(len(request.after) for request in requests), MOST_AFTER)
    if most:
        after = np.full((len(requests), most), NOTHING, np.int64)
        for row, request in enumerate(requests):
            after[row, : len(request.after[:most])] = request.after[:most]
        columns["after"] = after[index]
    return columns, names


def details_of_texts(texts: Mapping[str, Sequence[str]]) -> tuple[Columns, dict[str, Any]]:
    """The same from the cells of `TEXT_COLUMNS`, of those that a table has."""
    columns: Columns = {}
    names: dict[str, NDArray[np.str_]] = {}
    numbers: dict[str, int] = {}
    for name, cells in texts.items():
        if name in NAMED:
            columns[name], names[name] = to_ids(np.array(cells))
        elif name in ("job", "array"):
            # One numbering, as in Slurm, where jobs can come after an array as a whole.
            whole = [numbers.setdefault(cell, len(numbers) + 1) if cell else 0 for cell in cells]
            columns[name] = np.array(whole, np.int64)
        elif name != "after":
            whole = [int(cell) if cell.isdecimal() and len(cell) < 10 else 0 for cell in cells]
            columns[name] = np.array(whole, np.int64)
    if "after" in texts and numbers:
        listed = [cell.split()[:MOST_AFTER] for cell in texts["after"]]
        most = max(map(len, listed))
        rows = [
            [*(numbers.get(job, NOTHING) for job in jobs), *[NOTHING] * (most - len(jobs))]
            for jobs in listed
        ]
        columns["after"] = np.array(rows, np.int64).reshape(len(listed), most)
    return columns, names


def earlier_rows(jobs: RecordedJobs) -> NDArray[np.int64]:
    """Row of the run before a requeue, of each run of a log, int64 ``(num_jobs,)``; -1 for none."""
    rows = {int(line): row for row, line in enumerate(jobs.line)}
    lines = jobs.details.get("earlier_run", np.zeros(jobs.num_jobs, np.int64))
    found = [rows.get(line, NOTHING) if line else NOTHING for line in lines.tolist()]
    return np.array(found, np.int64)
