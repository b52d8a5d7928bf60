"""A site in a config: from files, as a table, and in the settings of a run."""

from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.spec import build_world
from cluster_env.sites.description import NodeGroup, Outage, Partition, Site
from cluster_env.sites.weights import Weights
from cluster_env.worlds.hpc import HPC
from rllib_configs.config.loading import load_config, write_config
from rllib_configs.config.settings import list_settings, settings_of
from tune_jobs.measuring.choices import choose_config

SITE = Site(
    nodes=(NodeGroup("c[1-4]", processors=8), NodeGroup("g", count=2, processors=4, gpus=2)),
    partitions=(Partition("main", ("c[1-4]",)), Partition("gpu", ("g", "c[1-2]"))),
    calendar=(Outage(5, 9, ("c[2-3]",)), Outage(5, 9, ("c4",))),
    weights=Weights(age=7),
)
TEXT = """
nodes:
- {name: "c[1-4]", processors: 8}
- {name: g, count: 2, processors: 4, gpus: 2}
partitions:
- {name: main, nodes: "c[1-4]"}
- {name: gpu, nodes: [g, "c[1-2]"]}
calendar:
- {start: 5, end: 9, nodes: "c[2-3]"}
- {start: 5, end: 9, nodes: c4}
weights: {age: 7}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "site.yaml"
    file.write_text(TEXT)
    (tmp_path / "jobs.csv").write_text(
        "arrival,duration,processors,queue\n"
        + "".join(f"{k},60,2,{'main' if k % 2 else 'gpu'}\n" for k in range(0, 900, 3))
    )
    return file


def test_a_file_and_a_table_make_the_same_world(path: Path) -> None:
    world = build_world({"kind": "hpc", "site": str(path)})
    assert world == HPC(site=SITE)
    assert world.capacity == (40, 4)  # type: ignore[attr-defined]
    table = {"nodes": [{"name": "c[1-4]", "processors": 8}], "partitions": [{"name": "main"}]}
    one = build_world({"kind": "hpc", "site": table})
    assert one == HPC(site=Site((SITE.nodes[0],), (Partition("main"),)))


def test_a_run_keeps_the_site_and_not_the_file(path: Path, tmp_path: Path) -> None:
    jobs = f"task.workload.trace={path.parent / 'jobs.csv'}"
    config = load_config("hpc-smoke", [f"task.world.site={path}", jobs])
    path.unlink()
    again = tmp_path / "config.yaml"
    write_config(config, again)
    assert load_config(again).task.world.site == SITE.without(["gpus"])
    assert "task.world.site" in {setting.key for setting in list_settings()}
    assert "task.world.site" in {setting.key for setting in settings_of(load_config("hpc-smoke"))}


def test_the_option_brings_the_site_s_weights_and_a_partition_alone(path: Path) -> None:
    log = [f"task.workload.trace={path.parent / 'jobs.csv'}", "task.world.kind=hpc"]
    whole = choose_config(None, log, {"site": str(path)}, ())
    assert whole.task.world.priority == Weights(age=7)
    assert whole.task.world.site == SITE.without(["gpus"])  # no job of the log held any
    own = choose_config(None, [*log, "task.world.priority.age=3"], {"site": str(path)}, ())
    assert own.task.world.priority.age == 3
    for options in ({"partition": "main", "site": str(path)}, {"site": path, "partition": "main"}):
        alone = choose_config(None, log, options, ())
        assert alone.task.world.site == Site(
            nodes=(SITE.nodes[0],),
            partitions=(Partition("main", default=True),),
            calendar=(Outage(5, 9, ("c2", "c3")), Outage(5, 9, ("c4",))),
            weights=Weights(age=7),
        )
        assert alone.task.build_workload().recorded.num_jobs == 150


def test_a_partition_alone_has_a_part_of_a_group_and_of_the_calendar() -> None:
    alone = SITE.only("gpu")
    assert alone.node_names == ("c1", "c2", "g1", "g2")
    assert alone.totals == (24, 0, 4)
    assert alone.calendar == (Outage(5, 9, ("c2",)),)
    with pytest.raises(InputError, match="unknown partition of the site 'gpus'"):
        SITE.only("gpus")


def test_what_is_wrong_in_a_table_is_named(path: Path) -> None:
    for site, words in (
        ({"nodes": [{"processor": 8}]}, "processor"),
        ({"nodes": [{"processors": 0}]}, "processors must be 1 to"),
        (str(path.parent / "nowhere.yaml"), "cannot read the site"),
    ):
        with pytest.raises(InputError, match=words) as refusal:
            load_config("hpc-smoke", {"task.world.site": site})
        assert "task.world.site" in str(refusal.value)
