"""Small sites and their jobs for Hypothesis."""

from dataclasses import replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet
from cluster_env.sites.description import Limit, NodeGroup, Outage, Partition, Site
from cluster_env.sites.requests import Requests

_NAMES = ("a", "b", "c")


@st.composite
def node_groups(draw, more: bool = False) -> tuple[NodeGroup, ...]:
    """Up to three groups of up to two nodes; ``more`` adds memory, GPUs, features and weights."""

    def group(name: str) -> NodeGroup:
        count, processors = draw(st.integers(1, 2)), draw(st.integers(1, 4))
        one = NodeGroup(name, count, processors)
        if not more:
            return one
        features = draw(st.sets(st.sampled_from(["x", "y"])))
        return replace(
            one,
            memory=draw(st.integers(0, 6)),
            gpus=draw(st.integers(0, 2)),
            features=tuple(sorted(features)),
            weight=draw(st.integers(1, 2)),
        )

    return tuple(group(name) for name in _NAMES[: draw(st.integers(1, 3))])


@st.composite
def sites(draw, more: bool = False, limits: bool = False, calendar: bool = False) -> Site:
    """A site of up to six nodes, whose partitions may overlap."""
    groups = draw(node_groups(more))
    names = [group.name for group in groups]
    subsets = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    partitions = tuple(
        Partition(
            f"p{k}",
            tuple(draw(subsets)),
            tier=draw(st.integers(1, 2)),
            max_nodes=draw(st.sampled_from([0, 0, 2])),
            min_nodes=draw(st.sampled_from([0, 0, 2])),
            exclusive=draw(st.sampled_from([False, False, True])),
            qos=draw(st.sampled_from(["", "q0"])) if limits else "",
        )
        for k in range(draw(st.integers(1, 3)))
    )
    return Site(
        nodes=groups,
        partitions=partitions,
        limits=draw(some_limits()) if limits else (),
        calendar=draw(calendars(names)) if calendar else (),
        placement=draw(st.sampled_from(["best", "order", "consecutive"])),
        when_node_fails=draw(st.sampled_from(["requeue", "lost"])),
    )


@st.composite
def some_limits(draw) -> tuple[Limit, ...]:
    """Two QOS, an account and a user, each with a few limits."""
    units = ("jobs", "processors", "nodes", "memory", "gpus")
    names = [f"{unit}{whose}" for unit in units for whose in ("", "_per_user", "_per_account")]
    made = []
    for name, kind in (("q0", "qos"), ("q1", "qos"), ("a0", "account"), ("u0", "user")):
        chosen = draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
        if kind == "user":
            chosen = [one for one in chosen if "_per_" not in one]
        made.append(Limit(name, kind, **{one: draw(st.integers(1, 5)) for one in chosen}))
    return tuple(made)


@st.composite
def calendars(draw, names: list[str]) -> tuple[Outage, ...]:
    """Up to three entries of any kind."""
    subsets = st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)
    entries = []
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, 25))
        entries.append(
            Outage(
                start,
                start + draw(st.integers(1, 15)),
                tuple(draw(subsets)),
                draw(st.sampled_from(["planned", "failure", "reservation"])),
                known_from=draw(st.integers(0, start)),
            )
        )
    return tuple(entries)


@st.composite
def jobs_of(draw, site: Site, follow: bool = False, impossible: bool = False) -> JobSet:
    """Up to 12 jobs of a site that compete, or 60; ``follow`` lets some depend on others.

    With ``impossible``, some of them may be such as can never run. Only long queues show whether a
    booking was lost, or in what order jobs of equal scores stand.
    """
    many = draw(st.integers(0, 9)) == 9
    count = 60 if many else draw(st.integers(1, 12))

    def numbers(low: int, high: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    run = numbers(1, 9)
    most = [site.units[:, r].sum() for r in range(len(site.resources))]
    columns = [numbers(int(r == 0), min(int(units), 6)) for r, units in enumerate(most)]
    reservations = [k for k, one in enumerate(site.calendar) if one.kind == "reservation"]
    picks = st.lists(st.sampled_from([-1, -1, *reservations]), min_size=count, max_size=count)
    masks = 2 ** len(site.feature_names) - 1
    attributes = {
        "estimate": np.maximum(1, run + numbers(-2, 6)),
        "partition": numbers(0, len(site.partitions) - 1),
        "nodes": numbers(-2, 3).clip(min=0),
        "exclusive": numbers(-2, 1).clip(min=0),
        "features": numbers(-2, masks).clip(min=0),
        "any_features": numbers(-2, masks).clip(min=0),
        "reservation": np.array(draw(picks)),
        "user": numbers(0, 2),
        "account": numbers(-1, 1),
        "qos": numbers(-1, len(site.qos_names) - 1),
    }
    if follow:
        earlier = [int(draw(st.integers(-2, j - 1))) for j in range(count)]
        attributes |= {
            "job_id": np.arange(count) + 100,
            "after": np.array([100 + k if k >= 0 else -1 for k in earlier]),
            "after_ok": numbers(0, 1),
            "failed": numbers(-2, 1).clip(min=0),
            "think_s": numbers(-1, 4),
            "array": numbers(-1, 1),
        }
        throttles = np.array([draw(st.integers(0, 2)), draw(st.integers(0, 2)), 0])
        attributes["throttle"] = throttles[attributes["array"]]
    jobset = JobSet.of(
        np.cumsum(numbers(0, 4)), run, np.stack(columns, axis=1), attributes=attributes
    )
    if impossible:
        return jobset
    can = np.ones(count, np.bool_)
    for never, _ in Requests.of(site, jobset).impossible():
        can &= ~never
    assume(can.any())
    return jobset.select(can)
