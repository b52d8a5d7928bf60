"""What is free on each node, from the jobs alone."""

from hypothesis import given
from hypothesis import strategies as st

from rllib_configs.snapshot import SiteNode
from tests.tune_jobs.site.test_slurm_text import SQUEUE
from tune_jobs.site import slurm
from tune_jobs.site.holding import Holding, free_now
from tune_jobs.site.slurm import SlurmBackend

NODES = tuple(SiteNode(name, 64, 100, 4, 40, 60, 2) for name in ("a", "b"))


def free(before, now, nodes=NODES):
    return {node.name: node.free for node in free_now(nodes, before, now)}


def on(*nodes, units=(8, 10, 1), completing=False):
    return Holding(nodes, units, completing)


def test_nothing_changes_as_long_as_jobs_stay():
    jobs = {"1": on("a"), "2": on("a", "b")}
    assert free_now(NODES, jobs, jobs) == NODES


def test_what_starts_takes_and_what_ends_gives():
    assert free({"1": on("a")}, {"2": on("b")}) == {"a": (48, 70, 3), "b": (32, 50, 1)}


def test_a_job_of_several_nodes_holds_its_sum():
    found = free({}, {"1": on("a", "b", units=(7, 3, 1))})
    assert {name: (40 - p, 60 - m, 2 - g) for name, (p, m, g) in found.items()} == {
        "a": (3, 1, 0),
        "b": (4, 2, 1),
    }


def test_no_more_is_free_than_there_is_and_no_less_than_nothing():
    assert free({"1": on("a", units=(99, 99, 9))}, {})["a"] == (64, 100, 4)
    assert free({}, {"1": on("a", units=(99, 99, 9))})["a"] == (0, 0, 0)


def test_no_job_starts_on_a_node_that_another_has_not_left():
    jobs = {"1": on("a", completing=True)}
    assert free(jobs, jobs) == {"a": (0, 60, 2), "b": (40, 60, 2)}


@given(st.lists(st.integers(1, 50), min_size=1, max_size=9), st.integers(0, 99))
def test_parts_sum_up_to_the_whole(sizes, units):
    names = tuple(f"n{k}" for k in range(len(sizes)))
    nodes = tuple(SiteNode(name, 99, 99, 99, 99, 99, 99) for name in names)
    found = free({}, {"1": on(*names, units=(units, 0, units))}, nodes)
    assert sum(99 - p for p, _, _ in found.values()) == units
    assert sum(99 - g for _, _, g in found.values()) == units


def test_between_two_looks_at_the_nodes_the_jobs_say_what_is_free(monkeypatch):
    clock, asked = [0.0], []
    running = "7|RUNNING|None|ann|main|1|1|2|5:00|10|1|10|cpu=10|N/A|N/A|N/A|N/A|1|n2|\n"
    said = {
        "scontrol": "ClusterName = lab\nSelectTypeParameters = CR_CPU\n",
        "squeue": SQUEUE,
        "sinfo": "n2|mixed|54/10/0/64|262144|0|(null)|(null)|main*|\n",
    }

    def call(program, *arguments, **options):
        asked.append(program)
        return said[program]

    monkeypatch.setattr(slurm, "call", call)
    backend = SlurmBackend(nodes_every_s=60, clock=lambda: clock[0])
    assert [node.free_processors for node in backend.read().nodes] == [10]
    said["squeue"], clock[0] = SQUEUE + running, 30.0
    assert [node.free_processors for node in backend.read().nodes] == [0]
    said["squeue"] = SQUEUE.replace("2|RUNNING", "2|COMPLETED")
    assert [node.free_processors for node in backend.read().nodes] == [14]
    # Throttles of arrays, partitions and reservations are read at the first look alone.
    once = ["squeue", "scontrol", "scontrol"]
    assert asked == ["scontrol", "squeue", "sinfo", *once, "squeue", "squeue"]
