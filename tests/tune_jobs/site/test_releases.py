"""What is under way and what rests, and what the guard makes of it."""

import pytest

from rllib_configs.snapshot import (
    BLOCKED,
    HELD,
    RUNNING,
    WAITING,
    Advice,
    SiteJob,
    SiteNode,
    Snapshot,
)
from tune_jobs.site.deciding import RESTING, UNDER_WAY, Limits, Past, decide
from tune_jobs.site.releases import LONGEST_REST_S, Releases


def at(time, **states):
    jobs = [SiteJob(job, state, "", "", "", 0, 0, 9, 1, 0, 0) for job, state in states.items()]
    return Snapshot(time, tuple(jobs), (SiteNode("n", 8, 0, 0, 8, 0, 0),))


class Clocked(Releases):
    """By the time of the site."""

    def past(self, snapshot, now=None):
        return super().past(snapshot, snapshot.time if now is None else now)

    def late(self, snapshot, past, now=None):
        return super().late(snapshot, past, snapshot.time if now is None else now)


def test_a_release_is_awaited_until_the_job_runs_or_is_gone():
    releases = Clocked(30)
    releases.note(["a", "b", "c"], 100)
    assert releases.past(at(101, a=WAITING, b=RUNNING, x=WAITING)) == Past(("a",))
    assert "x" not in releases
    assert releases.past(at(102, a=RUNNING)) == Past()
    assert releases.past(at(103, a=WAITING)) == Past()  # requeued: the site's own doing


def test_a_release_of_which_no_answer_came_is_awaited_once_it_has_happened():
    releases = Clocked(30)
    releases.note(["a"], 100)
    assert releases.past(at(101, a=HELD)) == Past((), {"a": 131})
    assert releases.past(at(102, a=WAITING)) == Past(("a",))


def test_a_clock_that_is_set_back_delays_nothing():
    releases, day = Releases(30), 86_400
    releases.note(["a"], 100)
    released = at(1000, a=WAITING)
    assert releases.late(released, releases.past(released, 101), 101) == []
    back = at(1030 - day, a=WAITING)
    assert releases.late(back, releases.past(back, 130), 130) == ["a"]
    releases.note_held(["a"], 130)
    assert releases.past(at(1031 - day, a=HELD), 131).resting == {"a": 1090 - day}
    assert releases.past(at(1090 - 2 * day, a=HELD), 190) == Past()


def test_a_job_that_stays_held_when_it_is_released_lets_others_go_first():
    releases = Clocked(30)
    releases.note(["a"], 100)
    assert releases.past(at(101, a=HELD, b=HELD)).resting == {"a": 131}
    assert releases.refused == {"a"}
    releases.note(["b"], 101)
    releases.past(at(102, a=HELD, b=HELD))
    assert releases.refused == {"a", "b"}
    releases.note(["a"], 131)
    releases.past(at(132, a=WAITING, b=HELD))
    assert releases.refused == set()
    releases.note(["b"], 140)
    releases.past(at(141, b=HELD))
    releases.past(at(142))  # cancelled
    assert releases.refused == set()


@pytest.mark.parametrize("state", [WAITING, BLOCKED])
def test_what_does_not_start_is_held_again_and_rests_longer_each_time(state):
    releases, now = Clocked(30), 100
    for rest in (60, 120, 240, 480, 960, 1920, LONGEST_REST_S, LONGEST_REST_S):
        releases.note(["a"], now)
        late = now + (0 if state == BLOCKED else 30)
        site = at(late, a=state)
        assert releases.late(site, releases.past(site)) == ["a"]
        if state == WAITING:
            before = at(late - 1, a=state)
            assert releases.late(before, releases.past(before)) == []
        releases.note_held(["a"], late)
        assert releases.past(at(late + 1, a=HELD)).resting == {"a": late + rest}
        now = late + rest
        assert releases.past(at(now, a=HELD)) == Past()


def test_with_no_limit_nothing_waits_for_anything():
    releases = Clocked(0)
    releases.note(["a"], 100)
    assert releases.past(at(10_000, a=WAITING)) == Past()


def eager(queue):
    return Advice(tuple(job.job for job in queue.waiting), {})


def test_nothing_starts_while_something_is_under_way():
    site = at(100, a=WAITING, b=HELD, c=HELD)
    found = decide(site, eager, Limits(), HELD, Past(("a",)))
    assert found.starts == ()
    assert {one.job: one.why for one in found.held} == {"b": UNDER_WAY, "c": UNDER_WAY}


def test_what_rests_is_passed_over_and_said():
    found = decide(at(100, b=HELD, c=HELD), eager, Limits(), HELD, Past((), {"b": 160}))
    assert [one.job for one in found.starts] == ["c"]
    assert [(one.job, one.why, one.until) for one in found.held] == [("b", RESTING, 160)]
    assert found.order == ("c", "b")
