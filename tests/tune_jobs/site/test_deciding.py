"""The guard: what fits starts, nobody waits for ever, and never too much at once."""

import pytest

from rllib_configs.snapshot import HELD, RUNNING, WAITING, Advice, SiteJob, SiteNode, Snapshot
from tune_jobs.site.deciding import LATER, NO_ROOM, OVERDUE, POLICY, TOO_MANY, Limits, decide

NOW = 10_000
NODES = (SiteNode("a", 8, 0, 2, 8, 0, 2), SiteNode("b", 8, 0, 0, 8, 0, 0))


def job(name, processors, state=HELD, *, waited=10, limit=100, gpus=0, nodes=1, start=0):
    eligible = NOW - waited
    return SiteJob(name, state, "", "", "", eligible, start, limit, processors, 0, gpus, nodes)


def eager(queue):
    """Starts all, the last submitted first."""
    return Advice(tuple(job.job for job in reversed(queue.waiting)), {})


def reluctant(queue):
    return Advice((), {job.job: NOW + 60 for job in queue.waiting})


def started(jobs, adviser=eager, nodes=NODES, **limits):
    decision = decide(Snapshot(NOW, tuple(jobs), nodes), adviser, Limits(**limits), HELD)
    return {one.job: one.why for one in decision.starts}, {
        one.job: one.why for one in decision.held
    }


def test_what_fits_starts_in_the_policy_s_order_and_no_more_than_fits():
    assert started([job("1", 6), job("2", 6, waited=5), job("3", 6, waited=1)]) == (
        {"3": POLICY, "2": POLICY},
        {"1": NO_ROOM},
    )


def test_a_job_of_one_node_needs_room_on_one_node():
    parts = [SiteNode(name, 8, 0, 0, 4, 0, 0) for name in "ab"]
    assert started([job("1", 6)], nodes=tuple(parts)) == ({}, {"1": NO_ROOM})
    assert started([job("1", 6, nodes=2)], nodes=tuple(parts))[0] == {"1": POLICY}


def test_gpus_go_with_processors():
    assert started([job("1", 2, gpus=2), job("2", 2, gpus=1, waited=5)])[0] == {"2": POLICY}
    assert started([job("1", 2, gpus=2), job("2", 8, waited=5)])[0] == {"1": POLICY, "2": POLICY}


def test_released_jobs_hold_their_room_until_they_start():
    assert started([job("1", 8, WAITING), job("2", 8, WAITING), job("3", 1)]) == (
        {},
        {"3": NO_ROOM},
    )


def test_no_more_start_in_a_tick_than_may():
    jobs = [job(str(k), 1, waited=9 - k) for k in range(5)]
    assert started(jobs, most_starts=2) == (
        {"4": POLICY, "3": POLICY},
        {"0": TOO_MANY, "1": TOO_MANY, "2": TOO_MANY},
    )


def test_who_has_waited_too_long_goes_first():
    jobs = [job("1", 8, waited=500), job("2", 8, waited=20), job("3", 8, waited=10)]
    assert started(jobs, eager, max_wait_s=300)[0] == {"1": OVERDUE, "3": POLICY}


def test_by_the_bound_on_waits_the_policy_s_own_plan_says_who_goes_first():
    """Job 1 is not in the plan yet, where it has room reserved; job 2 goes before job 3."""

    def planned(queue):
        assert queue.max_wait == 300
        return Advice(("3", "2"), {"1": NOW + 60})

    jobs = [job("1", 8, waited=500), job("2", 4, waited=400), job("3", 4, waited=10)]
    decision = decide(Snapshot(NOW, tuple(jobs), NODES), planned, Limits(max_wait_s=300), HELD)
    assert [(one.job, one.why) for one in decision.starts] == [("2", OVERDUE), ("3", POLICY)]
    assert decision.order == ("1", "2", "3")


def test_nobody_delays_who_has_waited_too_long():
    nodes = (SiteNode("a", 16, 0, 0, 6, 0, 0),)
    running = job("0", 10, RUNNING, start=NOW - 40, limit=100)
    wide = job("1", 12, waited=500)
    short, long = job("2", 4, limit=60), job("3", 5, limit=61)
    small = job("4", 4, limit=9_999, waited=9)
    found, held = started([running, wide, short, long], nodes=nodes, max_wait_s=300)
    assert found == {"2": POLICY}
    assert held == {"1": NO_ROOM, "3": "it would delay 1, which waited too long"}
    found, held = started([running, wide, long], nodes=nodes, max_wait_s=300)
    assert found == {}
    assert held["3"] == "it would delay 1, which waited too long"
    assert started([running, wide, small], nodes=nodes, max_wait_s=300)[0] == {"4": POLICY}


def test_what_is_held_back_has_a_reason_and_a_time():
    decision = decide(Snapshot(NOW, (job("1", 6), job("2", 6)), NODES), reluctant, Limits(), HELD)
    assert [(one.job, one.why, one.until) for one in decision.held] == [
        ("1", LATER, NOW + 60),
        ("2", LATER, NOW + 60),
    ]


@pytest.mark.parametrize("state", [HELD, WAITING])
def test_only_jobs_of_the_given_state_start(state):
    jobs = (job("1", 1, HELD), job("2", 1, WAITING))
    decision = decide(Snapshot(NOW, jobs, NODES), eager, Limits(), state)
    assert [one.job for one in decision.starts] == ["1" if state == HELD else "2"]


def test_the_order_is_that_of_the_plan_then_of_the_scores_and_overdue_jobs_come_first():
    jobs = [job("9", 8, waited=30), job("1", 8), job("2", 8), job("3", 8), job("4", 8, waited=999)]
    scores = {"9": 3.0, "1": 2.0, "2": 1.0, "3": 0.0, "4": 9.0}
    planned = {"9": NOW + 5, "1": NOW + 5, "2": NOW + 5, "3": NOW + 50, "4": NOW + 60}
    found = decide(
        Snapshot(NOW, tuple(jobs), NODES[:1]),
        lambda queue: Advice((), planned, scores),
        Limits(max_wait_s=300),
        HELD,
    )
    assert found.order == ("4", "2", "1", "9", "3")
