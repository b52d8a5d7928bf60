"""Jobs of a log at a site: what the log says of them becomes the attributes that `Site` lists."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError, shortened
from cluster_env.sites.description import RESOURCES, Site
from cluster_env.sites.limits import longest_times
from cluster_env.sites.requests import Requests
from cluster_env.workloads.details import earlier_rows
from cluster_env.workloads.recorded import NOTHING, Noticed, RecordedJobs

Columns = dict[str, NDArray[np.int64]]

_SAME_NAME = ("nodes", "exclusive", "array", "throttle", "failed")
"""Attributes that logs have as they are."""

_COPIES = re.compile(r"\*\d+")
_MIXED = re.compile(r"[^\w.|&,-]")


def on_site(jobs: RecordedJobs, site: Site, *, cap: bool = False) -> RecordedJobs:
    """The jobs that a site can run, with the attributes of jobs at a site.

    A job whose predecessors are in the log arrives when it was submitted, and the simulator makes
    it wait; all others arrive as without a site. Recorded waits count from when the last one of
    the predecessors had ended, and its think time was over. The jobs ask for the resources of the
    site: memory and GPUs that the log does not say are none. The detail ``row`` is the place of
    each in the log as it was read. With ``cap``, jobs run for no longer than the site's longest
    times; else those that ask for more are left out.

    Raises:
        InputError: if the site can run none of them.
    """
    jobs = replace(jobs, details={**jobs.details, "row": np.arange(jobs.num_jobs)})
    counted = _of_resources(jobs, site)
    jobs = counted.that_fit(site.capacity, "the site", site.resources)
    jobs = _with_partitions(jobs, site)
    jobs = replace(jobs, attributes={**jobs.attributes, **_attributes(jobs, site)})
    noticed = [one for one in jobs.noticed if "that it came after" not in one.what]
    jobs = replace(jobs, noticed=(*noticed, *_unknown(jobs, site)))
    requests = Requests.of(site, jobs.jobset())
    if cap:
        jobs = _capped(jobs, requests)
        requests = Requests.of(site, jobs.jobset())
    rows = np.arange(jobs.num_jobs)
    for never, why in requests.impossible():
        jobs, rows = _without(jobs, never[rows], why), rows[~never[rows]]
    jobs = _with_predecessors(jobs)
    ends = np.array([*(one.end for one in site.calendar), np.iinfo(np.int64).max])  # -1: none
    late = jobs.submit >= ends[jobs.attributes.get("reservation", NOTHING)]
    return _without(jobs, late, "was submitted after its reservation had ended")


def _capped(jobs: RecordedJobs, requests: Requests) -> RecordedJobs:
    """The same jobs, which end by themselves at the longest time that the site lets them have."""
    longest = np.full(jobs.num_jobs, np.iinfo(np.int64).max)
    for whose, seconds, _ in longest_times(requests.site, requests.columns):
        longest[whose] = np.minimum(longest[whose], seconds)
    over = jobs.estimate > longest
    if not over.any():
        return jobs
    what = "asks for more time than the site lets it have, and is cut to that"
    cut = Noticed(what, int(over.sum()), int(jobs.line[over].min()))
    run, estimate = (np.minimum(column, longest) for column in (jobs.run, jobs.estimate))
    return replace(jobs, run=run, estimate=estimate, noticed=(*jobs.noticed, cut))


def _of_resources(jobs: RecordedJobs, site: Site) -> RecordedJobs:
    """The same jobs, asking for the resources that nodes of the site have, and no other.

    Raises:
        InputError: if jobs held GPUs, and the site has none.
    """
    columns = dict(zip(jobs.resources, jobs.demand.T, strict=True))
    if "gpus" not in site.resources and "gpus" in columns and columns["gpus"].any():
        raise InputError(f"jobs of {jobs.path} held GPUs, but no node of the site has gpus")
    nothing = np.zeros(jobs.num_jobs, np.int64)
    if "memory" in site.resources and "memory" not in columns:
        what = "has no memory in the log, so memory does not count"
        unknown = Noticed(what, jobs.num_jobs, int(jobs.line.min()))
        jobs = replace(jobs, noticed=(*jobs.noticed, unknown))
    demand = [columns.get(name, nothing) for name in site.resources]
    optional = tuple(name for name in RESOURCES if name != "processors")
    return replace(
        jobs, demand=np.stack(demand, axis=1), resources=site.resources, optional=optional
    )


def _with_partitions(jobs: RecordedJobs, site: Site) -> RecordedJobs:
    """Jobs of partitions that the site has, each with the place of its own.

    Jobs that name none belong to the default one; where the site has a single one and no job names
    it, all of them do.
    """
    kinds = [jobs.names["queue"][jobs.ids["queue"]].astype(str)] if "queue" in jobs.ids else []
    kinds += [jobs.details["partition"].astype(str)] if "partition" in jobs.details else []
    names = {name: place for place, name in enumerate(site.partition_names)}
    found = np.full(jobs.num_jobs, site.default_partition, np.int64)
    place = {"": site.default_partition, str(NOTHING): site.default_partition}
    best = max(kinds, key=lambda kind: int(np.isin(kind, [*names]).sum()), default=None)
    if best is not None and (len(names) > 1 or np.isin(best, [*names]).any()):
        texts, index = np.unique(best, return_inverse=True)
        found = np.array([(place | names).get(text, NOTHING) for text in texts])[index]
    jobs = replace(jobs, attributes={**jobs.attributes, "partition": found})
    missing = found == NOTHING
    if best is not None and missing.any():
        shown = ", ".join(np.unique(best[missing])[:5].tolist())
        return _without(
            jobs, missing, f"is of a partition that the site does not have ({shortened(shown)})"
        )
    return jobs


def _with_predecessors(jobs: RecordedJobs) -> RecordedJobs:
    """The jobs by arrival, with their numbers, and who waits for whom; see `on_site`."""
    details = jobs.details
    row = np.arange(jobs.num_jobs)
    numbered = replace(jobs, attributes={**jobs.attributes, "job_id": row})
    if details.keys().isdisjoint(("after", "earlier_run")):
        return numbered
    after_ok = details.get("after_ok", np.zeros(jobs.num_jobs, np.int64))
    after = _known_predecessors(jobs, after_ok > 0)
    waits = (after != NOTHING).any(axis=1)
    if not waits.any():
        return numbered
    submit = np.where(waits, details.get("submitted", jobs.submit), jobs.submit)
    order = np.argsort(submit, kind="stable")
    place = np.empty_like(order)
    place[order] = row
    if jobs.wait is not None:
        could_start = _could_start(jobs, after)
        jobs = replace(jobs, wait=jobs.start - could_start, delay=could_start - submit)
    found = {
        "job_id": row,
        "after": np.where(after != NOTHING, place[np.maximum(after, 0)], NOTHING)[order],
        "after_ok": np.where(waits, after_ok, 0)[order],
    }
    if "think_s" in details:
        found["think_s"] = np.where(waits, details["think_s"], NOTHING)[order]
    jobs = jobs.select(order, submit[order])
    return replace(jobs, attributes={**jobs.attributes, **found})


def _could_start(jobs: RecordedJobs, after: NDArray[np.int64]) -> NDArray[np.int64]:
    """When the last predecessor of each job had ended, and its think time was over, at the site."""
    ends = np.where(after != NOTHING, (jobs.start + jobs.run)[after], jobs.submit[:, None])
    think = np.maximum(jobs.details.get("think_s", np.zeros(jobs.num_jobs, np.int64)), 0)
    ready = np.where((after != NOTHING).any(axis=1), ends.max(axis=1) + think, jobs.submit)
    return np.clip(ready, jobs.submit, jobs.start)


def _known_predecessors(jobs: RecordedJobs, after_ok: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rows of the jobs that each one came after, int64 ``(num_jobs, k)``; -1 for none.

    Those that are not in the log, that had not ended when the job started, or that failed although
    they had to succeed, say nothing that a simulation could repeat.
    """
    details = jobs.details
    after = details.get("after", np.empty((jobs.num_jobs, 0), np.int64))
    start = jobs.start
    end = start + jobs.run
    failed = details.get("failed", np.zeros(jobs.num_jobs, np.int64)) > 0
    rows = np.full(after.shape, NOTHING, np.int64)
    # An array is named by the number that its jobs share: the last of them to end counts.
    order = np.argsort(end, kind="stable")
    for name in ("job", "array"):
        if name not in details:
            continue
        numbers = details[name][order]
        by_number = np.argsort(numbers, kind="stable")
        last = np.searchsorted(numbers[by_number], after, side="right") - 1
        there = (last >= 0) & (numbers[by_number][last] == after) & (after > 0)
        rows = np.where(there, order[by_number[last]], rows)
    if "earlier_run" in details:
        rows = np.column_stack([rows, earlier_rows(jobs)])
    known = rows != NOTHING
    before = np.maximum(rows, 0)
    if jobs.wait is not None:
        known &= end[before] <= start[:, None]
    known &= ~(failed[before] & after_ok[:, None]) & (before != np.arange(jobs.num_jobs)[:, None])
    return np.where(known, rows, NOTHING)


def _attributes(jobs: RecordedJobs, site: Site) -> Columns:
    found = {name: jobs.details[name] for name in _SAME_NAME if name in jobs.details}
    if "array" in found:
        found["array"] = np.where(found["array"] > 0, found["array"], NOTHING)
    # A partition of one node may be one of which only the size is known. What held whole nodes
    # there holds as many processors in the log.
    single = np.array([site.node_set(k).sum() == 1 for k in range(len(site.partitions))])
    for name in ("nodes", "exclusive"):
        if name in found:
            found[name] = np.where(single[jobs.attributes["partition"]], 0, found[name])
    places = {"qos": site.qos_names, "reservation": [outage.name for outage in site.calendar]}
    for name, known in places.items():
        if name in jobs.details:
            found[name] = _places(jobs, jobs.details[name], name, known)
    # Users and accounts with limits of their own come first, and the others behind them.
    for ours, theirs, own in (
        ("account", "group", site.account_names),
        ("user", "user", site.user_names),
    ):
        if theirs in jobs.ids:
            place = _places(jobs, jobs.ids[theirs], theirs, own)
            found[ours] = np.where(place == NOTHING, len(own) + jobs.ids[theirs], place)
    if "constraint" in jobs.details:
        wanted = [_features(str(text), site) for text in jobs.names["constraint"]]
        columns = np.array(wanted, np.int64).reshape(-1, 2)[jobs.details["constraint"]]
        found["features"], found["any_features"] = columns.T
    return found


def _places(
    jobs: RecordedJobs, numbers: NDArray[np.int64], name: str, known: Sequence[str]
) -> NDArray[np.int64]:
    """Places of names among those that are known, -1 for others."""
    place = {text: k for k, text in enumerate(known)}
    of_name = [place.get(str(text), NOTHING) for text in jobs.names[name]]
    return np.array(of_name, np.int64)[numbers]


def _features(text: str, site: Site) -> tuple[int, int]:
    """Masks of the features that all, and that one of a job's nodes needs."""
    names = _named_features(text)
    known = [name for name in names if name in site.feature_names]
    if "|" in text:
        return 0, site.feature_mask(known)
    return site.feature_mask(known), 0


def _named_features(text: str) -> list[str]:
    """The features of a constraint; none where it is more than a list of them."""
    plain = _COPIES.sub("", text).strip("[]()")
    if _MIXED.search(plain) or ("|" in plain and re.search("[&,]", plain)):
        return []
    return [name for name in re.split(r"[&,|]", plain) if name]


def _unknown(jobs: RecordedJobs, site: Site) -> list[Noticed]:
    """What the log says and the site does not."""
    noticed = []
    wanted = {
        "qos": ("has a QOS without limits at this site", "qos"),
        "reservation": ("had a reservation that the site's calendar lacks", "reservation"),
    }
    for name, (what, attribute) in wanted.items():
        if name not in jobs.details:
            continue
        named = jobs.names[name][jobs.details[name]].astype(str) != ""
        lost = named & (jobs.attributes[attribute] == NOTHING)
        if lost.any():
            noticed.append(Noticed(what, int(lost.sum()), int(jobs.line[lost].min())))
    if "constraint" in jobs.details:
        texts = [str(text) for text in jobs.names["constraint"]]
        features = set(site.feature_names)
        named = [_named_features(text) for text in texts]
        strange = [
            bool(text) and not (names and features.issuperset(names))
            for text, names in zip(texts, named, strict=True)
        ]
        lost = np.array(strange)[jobs.details["constraint"]]
        if lost.any():
            what = "has constraints with features that the site does not have"
            noticed.append(Noticed(what, int(lost.sum()), int(jobs.line[lost].min())))
    return noticed


def _without(jobs: RecordedJobs, lost: NDArray[np.bool_], why: str) -> RecordedJobs:
    """The other jobs; these are counted as dropped for a reason."""
    if lost.all():
        raise InputError(f"the site can run none of the jobs of {jobs.path}: each {why}")
    return jobs.leaving_out(lost, why)
