"""What Slurm would refuse is never released: partitions, limits, reservations, features, arrays."""

import json
from dataclasses import replace

import pytest

from rllib_configs.snapshot import HELD, RUNNING, WAITING, Advice, SiteJob, SiteNode, Snapshot
from tune_jobs.site.deciding import LATER, NO_ROOM, OVERDUE, POLICY, Limits, decide

NOW = 10_000
NODES = (
    SiteNode("n1", 8, 0, 0, 8, 0, 0, "batch", "old"),
    SiteNode("n2", 8, 0, 0, 8, 0, 0, "batch,express", "old,fast"),
    SiteNode("n3", 8, 0, 0, 8, 0, 0, "express", "fast"),
)
BATCH = {"name": "batch", "nodes": ["n1", "n2"], "default": True}
EXPRESS = {"name": "express", "nodes": ["n2", "n3"], "max_time_s": 600, "max_nodes": 1, "tier": 2}
SITE = {"partitions": [BATCH, EXPRESS], "limits": [], "calendar": []}


def job(name, processors, partition="batch", *, state=HELD, limit=100, waited=10, **options):
    start, nodes = options.pop("start", 0), options.pop("nodes", 1)
    eligible, user = NOW - waited, options.pop("user", "ann")
    made = SiteJob(
        name, state, "", user, partition, eligible, start, limit, processors, 0, 0, nodes
    )
    return replace(made, **options)


def eager(queue):
    """Starts all, as many as there are, in the order of arrival."""
    return Advice(tuple(job.job for job in queue.waiting), {})


def decided(jobs, adviser=eager, nodes=NODES, guard=None, **site):
    snapshot = Snapshot(NOW, tuple(jobs), nodes, 0, {**SITE, **site})
    decision = decide(snapshot, adviser, guard or Limits(), HELD)
    return {one.job: one.why for one in decision.starts}, {
        one.job: one.why for one in decision.held
    }


def started(*jobs, **options):
    return set(decided(jobs, **options)[0])


def test_a_job_has_nodes_of_its_partition_alone():
    jobs = [job("1", 8), job("2", 8), job("3", 8), job("4", 8, "express")]
    found, held = decided(jobs)
    # The higher tier goes first and takes n2 or n3; of the other partition n1 is left, and n2.
    assert set(found) - {"2"} == {"1", "4"}
    assert held["3"] == NO_ROOM
    assert started(job("1", 12, nodes=2), job("2", 4, "express")) == {"1", "2"}
    assert started(job("1", 16, nodes=2), job("2", 8, "express"), job("3", 8, "express")) == {
        "2",
        "3",
    }


def test_a_limit_on_nodes_counts_each_node_once():
    one = {"name": "one", "kind": "qos", "nodes": 1}
    running = job("0", 2, state=RUNNING, node_list="n2", start=NOW - 5, qos="one")
    nodes = (NODES[0], replace(NODES[1], free_processors=4), NODES[2])
    waiting = [job("1", 2, qos="one"), job("2", 1, qos="one"), job("3", 5, qos="one")]
    found, held = decided([running, *waiting], nodes=nodes, limits=[one])
    # Two find room beside the job that runs; for the third there is only another node.
    assert set(found) == {"1", "2"}
    assert held == {"3": NO_ROOM}
    unknown = replace(running, node_list="")
    _, held = decided([unknown, *waiting], nodes=nodes, limits=[one])
    assert set(held.values()) == {"limit: 1 nodes of the qos one"}
    wide = job("4", 10, nodes=2, qos="two")
    two = {"name": "two", "kind": "qos", "nodes": 2}
    other = replace(running, node_list="n3", partition="express", qos="two")
    _, held = decided([other, wide], nodes=nodes, limits=[two])
    assert held == {"4": "limit: 2 nodes of the qos two"}


def test_of_several_partitions_any_will_do():
    full = job("0", 8, "express", state=RUNNING, node_list="n3", start=NOW - 5)
    nodes = (*NODES[:2], replace(NODES[2], free_processors=0))
    jobs = [full, job("1", 8, "express,batch"), job("2", 8, "express,batch")]
    assert started(*jobs, nodes=nodes) == {"1", "2"}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (job("1", 4, "express", limit=601), "more time than the partition express"),
        (job("1", 12, "express", nodes=2), "lets no job have"),
        (job("1", 1, "gone"), "its partition is not known"),
        (job("1", 1, features="gold"), "no node has the features gold"),
        (job("1", 12, features="old&fast", nodes=2), "fits on no nodes"),
        (job("1", 1, reservation="later"), "the reservation later is not active"),
    ],
)
def test_what_can_never_start_now_is_held_with_the_reason(bad, why):
    later = {"name": "later", "kind": "reservation", "start": NOW + 50, "end": NOW + 99}
    found, held = decided([bad, job("2", 1)], calendar=[{**later, "nodes": ["n1"]}])
    assert set(found) == {"2"}
    assert why in held["1"]


def test_features_choose_nodes():
    assert started(job("1", 8, features="fast"), job("2", 8, features="fast")) == {"1"}
    assert started(job("1", 8, features="fast|old"), job("2", 8, features="[fast|old]")) == {
        "1",
        "2",
    }


def test_nobody_runs_into_a_reservation_but_those_that_have_it():
    course = {"name": "course", "kind": "reservation", "start": NOW + 50, "end": NOW + 99}
    course["nodes"] = ["n[1-2]"]
    found, held = decided([job("1", 1, limit=51), job("2", 1, limit=50)], calendar=[course])
    assert set(found) == {"2"}
    assert held["1"] == "no node is free of reservations for as long as it may run"
    begun = {**course, "start": NOW}
    jobs = [job("1", 8, limit=50), job("2", 8, reservation="course", waited=5)]
    assert started(*jobs, calendar=[begun]) == {"2"}


LIMITED = [
    {"name": "normal", "processors_per_user": 8, "jobs_per_user": 3},
    {"name": "bio", "kind": "account", "processors": 6},
]


def test_what_runs_counts_against_limits_and_so_does_what_starts():
    runs = job("0", 4, state=RUNNING, start=NOW - 5, node_list="n1", qos="normal")
    nodes = (replace(NODES[0], free_processors=4), *NODES[1:])
    jobs = [job(str(k), 2, qos="normal", waited=9 - k) for k in range(1, 5)]
    jobs.append(job("5", 2, qos="normal", user="bob"))
    found, held = decided([runs, *jobs], nodes=nodes, limits=LIMITED)
    assert set(found) == {"1", "2", "5"}
    assert held["3"] == "limit: 3 jobs per user of the qos normal"


def test_a_job_that_a_limit_blocks_makes_way_for_the_next_one():
    """The policy is asked again: it knows nothing of limits, and would start the two of ann."""

    def first_two(queue):
        return Advice(tuple(job.job for job in queue.waiting[:2]), {})

    jobs = [job("1", 6, qos="normal"), job("2", 6, qos="normal", waited=9)]
    jobs += [job("3", 6, qos="normal", user="bob", waited=8)]
    assert set(decided(jobs, first_two, limits=LIMITED)[0]) == {"1", "3"}


def test_released_jobs_count_as_running():
    jobs = [job("1", 6, state=WAITING, account="bio"), job("2", 1, account="bio", user="bob")]
    found, held = decided(jobs, limits=LIMITED)
    assert found == {}
    assert held["2"] == "limit: 6 processors of the account bio"


def test_no_more_elements_of_an_array_run_than_may():
    runs = job("7_0", 1, state=RUNNING, start=NOW - 5, node_list="n1", array="7", throttle=2)
    jobs = [job(f"7_{k}", 1, array="7", throttle=2) for k in range(1, 4)]
    found, held = decided([runs, *jobs])
    assert set(found) == {"7_1"}
    assert held["7_2"] == "limit: 2 jobs of its array"


def test_who_has_waited_too_long_has_room_kept_also_from_other_partitions():
    """Job 1 waits for n1 and n2, so nobody starts on n2 for longer than n1 is taken."""
    runs = job("0", 8, state=RUNNING, start=NOW, limit=60, node_list="n1")
    nodes = (replace(NODES[0], free_processors=0), *NODES[1:])
    wide = job("1", 16, nodes=2, waited=999)
    jobs = [runs, wide, job("2", 8, "express", limit=61), job("3", 8, "express", limit=61)]
    found, _ = decided(jobs, nodes=nodes, guard=Limits(max_wait_s=300))
    assert set(found) == {"2"}  # on n3


def test_a_policy_s_own_delay_stays_a_delay():
    def reluctant(queue):
        return Advice((), {one.job: NOW + 7 for one in queue.waiting})

    assert decided([job("1", 1)], reluctant) == ({}, {"1": LATER})
    assert decided([job("1", 1, waited=400)], reluctant, guard=Limits(max_wait_s=300))[0] == {
        "1": OVERDUE
    }
    assert decided([job("1", 1)])[0] == {"1": POLICY}


def test_a_record_of_before_partitions_were_read_is_read_as_it_is():
    old = {
        "time": NOW,
        "unreadable": 0,
        "jobs": [["1", HELD, "", "ann", "batch", 1, 0, 9, 4, 0, 0, 1, 0, 0]],
        "nodes": [["n1", 8, 0, 0, 8, 0, 0]],
    }
    snapshot = Snapshot.from_plain(old)
    assert snapshot.restrictions is None
    assert snapshot.to_plain() == old
    assert [one.job for one in decide(snapshot, eager, Limits(), HELD).starts] == ["1"]


def test_what_was_decided_with_limits_is_decided_again_from_the_record():
    course = {"name": "course", "kind": "reservation", "start": NOW, "end": NOW + 99}
    jobs = (job("1", 6, qos="normal"), job("2", 6, qos="normal"), job("3", 1, features="fast"))
    site = {**SITE, "limits": LIMITED, "calendar": [{**course, "nodes": ["n3"]}]}
    snapshot = Snapshot(NOW, jobs, NODES, 0, site)
    again = Snapshot.from_plain(json.loads(json.dumps(snapshot.to_plain())))
    assert decide(again, eager, Limits(), HELD) == decide(snapshot, eager, Limits(), HELD)
