"""Changes to a site, as people write them, make the site that is meant and leave the rest."""

import pytest

from cluster_env.core.errors import InputError
from cluster_env.sites.changes import changed_site, changes_site
from cluster_env.sites.description import Limit, NodeGroup, Outage, Partition, Site

SITE = Site(
    nodes=(NodeGroup("c", 4, 16), NodeGroup("g", 2, 32, gpus=4)),
    partitions=(
        Partition("batch", ("c",), max_time_s=86_400, default=True),
        Partition("short", ("c[1-2]",)),
        Partition("gpu", ("g",), tier=2),
        Partition("all"),
    ),
    limits=(Limit("low", jobs_per_user=2), Limit("bio", "account", processors=64)),
    calendar=(Outage(50, 60, ("c3", "c4"), name="repair"),),
)


def changed(key: str, value: str) -> Site:
    return changed_site(SITE, key, value, 1000)


def nodes_of(site: Site, name: str) -> set[str]:
    partition = site.partitions[site.partition_names.index(name)]
    return {site.node_names[k] for k in site.indices(partition.nodes)}


def test_nodes_are_added_to_one_partition_alone() -> None:
    site = changed("partition.gpu.nodes", "+3")
    assert site.num_nodes == SITE.num_nodes + 3
    assert nodes_of(site, "gpu") > {"g1", "g2"}
    assert len(nodes_of(site, "gpu")) == 5
    for name in ("batch", "short", "all"):
        assert nodes_of(site, name) == nodes_of(SITE, name)
    assert site.totals == (4 * 16 + 5 * 32, 0, 20)  # like the partition's own
    again = changed_site(site, "partition.batch.nodes", "+1", 0)
    assert again.num_nodes == site.num_nodes + 1
    assert again.totals[0] == site.totals[0] + 16


def test_nodes_that_no_partition_has_are_gone() -> None:
    without_all = Site(SITE.nodes, SITE.partitions[:3], SITE.limits, SITE.calendar)
    site = changed_site(without_all, "partition.batch.nodes", "2", 0)
    assert site.node_names == ("c1", "c2", "g1", "g2")
    assert nodes_of(site, "short") == nodes_of(site, "batch") == {"c1", "c2"}
    assert site.calendar == ()  # its nodes are gone
    kept = changed("partition.batch.nodes", "-50%")  # the partition of all nodes has them
    assert kept.num_nodes == SITE.num_nodes
    assert nodes_of(kept, "batch") == {"c1", "c2"}
    part = changed_site(without_all, "partition.batch.nodes", "-1", 0)
    assert part.node_names == ("c1", "c2", "c3", "g1", "g2")
    assert [part.node_names[k] for k in part.indices(part.calendar[0].nodes)] == ["c3"]


def test_a_partition_may_have_other_nodes() -> None:
    assert nodes_of(changed("partition.short.nodes", "c[3-4]"), "short") == {"c3", "c4"}
    assert nodes_of(changed("partition.short.nodes", "g"), "short") == {"g1", "g2"}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("partition.batch.max-time", "2d", 172_800),
        ("partition.batch.max-time", "0", 0),
        ("partition.gpu.tier", "+1", 3),
        ("partition.gpu.exclusive", "true", True),
        ("partition.gpu.qos", "low", "low"),
    ],
)
def test_options_of_partitions(key: str, value: str, expected: object) -> None:
    _, name, option = key.split(".")
    site = changed(key, value)
    partition = site.partitions[site.partition_names.index(name)]
    names = {"max-time": "max_time_s"}
    assert getattr(partition, names.get(option, option)) == expected
    others = [one for one in site.partitions if one.name != name]
    assert others == [one for one in SITE.partitions if one.name != name]


def test_limits_are_changed_or_made() -> None:
    assert changed("qos.low.jobs-per-user", "4").limits == (
        Limit("low", jobs_per_user=4),
        SITE.limits[1],
    )
    assert changed("account.bio.processors", "+100%").limits[1].processors == 128
    made = changed("user.ada.jobs", "1").limits
    assert made == (*SITE.limits, Limit("ada", "user", jobs=1))


def test_an_outage_is_counted_from_the_first_job() -> None:
    assert changed("outage", "1h+30m:g").calendar[-1] == Outage(4600, 6400, ("g",))
    assert changed("outage", "0+1d").calendar[-1] == Outage(1000, 87_400, ())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("partition.nosuch.tier", "1"), ("partition.gpu.nosuch", "1"), ("partition.gpu", "1")),
        *(("partition.gpu.nodes", "-2"), ("partition.gpu.nodes", "z9"), ("qos.nosuch.jobs", "1")),
        *(("partition.gpu.exclusive", "2"), ("partition.gpu.tier", "x"), ("qos.low.jobs", "+1")),
        *(("partition.gpu.max-time", "soon"), ("outage", "1d"), ("outage", "1d+0"), ("outage", "")),
        *(("outage", "1d+1d:z9"), ("partition.gpu.qos", "bio"), ("qos.low.name", "x")),
    ],
)
def test_impossible_changes_are_refused(key: str, value: str) -> None:
    assert changes_site(key)
    with pytest.raises(InputError):
        changed(key, value)
    assert not changes_site("processors")
