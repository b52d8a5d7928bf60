"""A simulated site under a policy: shadowed, steered, away and back, recorded and decided anew."""

import json

import numpy as np
import pytest

from cluster_env.core.errors import Failure, InputError
from cluster_env.core.jobs import JobSet
from cluster_env.evaluation import evaluate
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from rllib_configs.snapshot import HELD, RUNNING, WAITING, Advice, SiteJob, SiteNode, Snapshot
from tune_jobs.site.choosing import choose_adviser
from tune_jobs.site.commands import Forbidden, SiteAway
from tune_jobs.site.deciding import POLICY, Decision, Limits, Start
from tune_jobs.site.journal import decided_anew, open_journal
from tune_jobs.site.shadowing import Agreement, shadow
from tune_jobs.site.simulated import SimulatedBackend
from tune_jobs.site.steering import PRIORITY, Steerer, Steering
from tune_jobs.site.ticks import Ticks


class Clock:
    """Time that passes where somebody sleeps, or looks at a site."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


JOBS = JobSet.of(
    arrival=np.arange(12) * 3,
    duration=[30, 5, 8, 60, 2, 9, 40, 3, 7, 20, 4, 6],
    demand=[[6], [3], [8], [1], [4], [2], [7], [5], [1], [3], [8], [2]],
    attributes={"estimate": [30, 5, 8, 60, 2, 9, 40, 3, 7, 20, 4, 6]},
)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="module")
def sjf():
    return choose_adviser("sjf:easy")


def site(clock, held, rule="fcfs:easy", backend=SimulatedBackend):
    return backend(JOBS, (8,), choose_adviser(rule), held=held, clock=clock)


def looks(backend, clock, write=lambda entry: None, **options):
    settings = {"tick_s": 1.0, "most": 400, "stopping": lambda: backend.is_over, **options}
    return Ticks(backend, write, sleep=clock.sleep, clock=clock, **settings)


class Watch:
    """Counts the ticks that were completed, and wants an end from some time on."""

    def __init__(self, clock, ends_at=float("inf")):
        self._clock, self._ends_at, self.beats = clock, ends_at, 0

    def beat(self):
        self.beats += 1

    def reason_to_end(self):
        return "enough" if self._clock() >= self._ends_at else ""


def steerer(backend, ticks, adviser, lines, watch=None, clock=None, **steering):
    how = Steering(act=True, **steering)
    return Steerer(
        backend,
        ticks,
        adviser,
        "sjf:easy",
        Limits(),
        how,
        lines.append,
        watch,
        clock or ticks._clock,
    )


def steer(backend, clock, adviser, lines, watch=None):
    return steerer(backend, looks(backend, clock, lines.append), adviser, lines, watch).run()


def test_a_steered_site_does_what_the_policy_does_in_the_simulator(clock, sjf):
    backend, lines = site(clock, held=True), []
    summary = steer(backend, clock, sjf, lines)
    world = HPC(processors=8)
    schedule = evaluate(get_heuristic("sjf:easy", world), [JOBS], world)
    planned = {
        str(job + 1): (int(start), int(finish))
        for job, start, finish in zip(schedule.job, schedule.start, schedule.finish, strict=True)
    }
    assert backend.history == planned
    assert (summary["started"], summary["reheld"], summary["refused"]) == (12, 0, 0)


def test_a_dry_run_changes_nothing(clock, sjf):
    backend, lines = site(clock, held=True), []
    ticks = looks(backend, clock, most=60)
    Steerer(backend, ticks, sjf, "", Limits(), Steering(), lines.append).run()
    assert {job.state for job in backend.read().jobs} == {HELD}
    assert sum(len(line["release"]) for line in lines) > 0
    assert not any(line["acts"] for line in lines)


def test_recorded_decisions_come_out_again_to_the_last_bit(clock, sjf, tmp_path):
    backend, path = site(clock, held=True), tmp_path / "steer.jsonl"
    write = open_journal(path)
    ticks = looks(backend, clock, write, most=40)
    Steerer(backend, ticks, sjf, "", Limits(max_wait_s=40), Steering(act=True), write).run()
    again = list(decided_anew(path, sjf))
    assert len(again) == 40
    assert all(same for _, same in again)
    assert not all(same for _, same in decided_anew(path, choose_adviser("fcfs:easy")))
    path.write_text(path.read_text().replace('"kind":"tick"', '"kind":', 1))
    with pytest.raises(InputError, match="line 1 of"):
        list(decided_anew(path, sjf))


def test_shadow_advises_and_changes_nothing(clock, sjf):
    backend, alone = site(clock, held=False), site(Clock(), held=False)
    lines = []
    shadow(looks(backend, clock), sjf, "sjf:easy", Limits(), lines.append)
    alone._clock.now = 1000.0
    alone.read()
    assert backend.history == alone.history
    agreed = [line["site"]["agreement"] for line in lines[1:]]
    assert None in agreed
    json.dumps(lines, allow_nan=False)


def test_a_site_that_follows_the_advice_agrees_and_another_does_not():
    def snapshot(**states):
        jobs = [SiteJob(job, state, "", "", "", 0, 0, 9, 1, 0, 0) for job, state in states.items()]
        return Snapshot(0, tuple(jobs), ())

    def advised(*jobs):
        return Decision(tuple(Start(job, POLICY, 0, None) for job in jobs), (), jobs)

    agreement = Agreement()
    first = snapshot(a=WAITING, b=WAITING, c=WAITING, d=RUNNING)
    assert agreement.since(first) is None
    agreement.note(first, advised("a", "b"))
    found = agreement.since(snapshot(a=RUNNING, b=WAITING, c=RUNNING, d=RUNNING))
    assert found == {"started": ["a", "c"], "gone": [], "agreement": 1 / 3}
    found = agreement.since(snapshot(a=RUNNING, c=WAITING))
    assert found == {"started": ["a"], "gone": ["b"], "agreement": 1.0}
    agreement.note(first, advised())
    assert agreement.since(first)["agreement"] is None


def test_a_site_that_is_away_is_asked_again_after_longer_and_longer_pauses(clock):
    backend, lines, said, times = site(clock, held=True), [], [], []

    class Away(SimulatedBackend):
        def read(self):
            times.append(clock.now)
            if clock.now < 20:
                raise SiteAway("no answer" if clock.now < 5 else f"garbage in row {clock.now}")
            return super().read()

    backend = site(clock, held=True, backend=Away)
    ticks = looks(backend, clock, lines.append, announce=said.append, most=2, tick_s=5.0)
    while ticks.look() is not None:
        ticks.note_completed()
    assert np.allclose(times, [0, 1, 3, 7, 15, 31, 36])
    # The first failure, each other one, and the recovery; the same stands in the journal.
    assert [line["kind"] for line in lines] == ["away", "away", "back"]
    assert ["no answer" in said[0], "garbage" in said[1], said[2]] == [
        *(True, True),
        "Slurm answers again",
    ]


def test_the_time_without_progress_counts_from_the_last_completed_tick(clock):
    ticks = looks(site(clock, held=True), clock, most=3)
    for _ in range(3):
        assert ticks.look() is not None
    assert ticks.without_progress_s == pytest.approx(2)
    ticks.note_completed()
    assert ticks.without_progress_s == 0


class Fickle(SimulatedBackend):
    """A job is cancelled between look and release, and one release does not come through."""

    calls = 0

    def start(self, jobs):
        self.calls += 1
        if self.calls == 1:
            self.cancel(jobs[0])
        if self.calls == 3:
            raise SiteAway("gone for a moment")
        return super().start(jobs)


def test_what_changes_meanwhile_stops_nobody(clock, sjf):
    backend, lines = site(clock, held=True, backend=Fickle), []
    summary = steer(backend, clock, sjf, lines)
    assert len(backend.history) == 11
    assert summary["refused"] == 1
    assert [line["kind"] for line in lines].count("away") == 1


def test_nothing_is_done_once_steering_must_end(clock, sjf):
    backend, lines = site(clock, held=True), []
    steer(backend, clock, sjf, lines, watch=Watch(clock, ends_at=5))
    assert clock.now < 7
    assert backend.read().in_state(HELD)


def test_a_beat_is_a_completed_tick(clock, sjf):
    backend, lines, watch = site(clock, held=True, backend=Fickle), [], Watch(clock)
    steer(backend, clock, sjf, lines, watch)
    ticks = [line["kind"] for line in lines].count("tick")
    assert watch.beats == ticks - 1  # not the tick whose release did not come through


class Refusing(SimulatedBackend):
    """It releases no job, or all but one."""

    heeds = ()

    def start(self, jobs):
        super().start([job for job in jobs if job in self.heeds])
        return ["scontrol failed: Unexpected message received"]


@pytest.mark.parametrize(
    ("heeds", "progress"), [((), False), (tuple(map(str, range(2, 13))), True)]
)
def test_where_no_release_is_heeded_there_is_no_progress(heeds, progress, clock, sjf):
    """One job that is refused has a reason of its own, and others are released meanwhile."""
    backend, lines, said, watch = site(clock, True, backend=Refusing), [], [], Watch(clock)
    backend.heeds = heeds
    ticks = looks(backend, clock, lines.append, most=60, announce=said.append)
    steerer(backend, ticks, sjf, lines, watch, rehold_s=30.0).run()
    assert (watch.beats > 50) == progress
    assert said[0].endswith(
        "job 1 stays held when it is released: scontrol failed: Unexpected message received"
    )
    assert (len(backend.history) > 0) == progress


def test_a_release_without_an_answer_is_awaited(clock, sjf):
    """The job may start all the same: nothing else is released before it has."""

    class Silent(Stubborn):
        def start(self, jobs):
            super().start(jobs)
            raise SiteAway("scontrol did not answer within 30 s")

    backend, lines = site(clock, held=True, backend=Silent), []
    ticks = looks(backend, clock, most=2)
    steerer(backend, ticks, sjf, lines).run()
    first, second = [line for line in lines if line["kind"] == "tick"]
    assert first["release"] == ["1"]
    assert (second["past"]["awaited"], second["release"]) == (("1",), [])


class Forbidding(SimulatedBackend):
    """It takes the account that steers for an ordinary user's."""

    def start(self, jobs):
        raise Forbidden("scontrol failed: Invalid user id")


def test_an_account_without_rights_is_told_what_it_needs(clock, sjf):
    lines = []
    with pytest.raises(Failure, match="AdminLevel=Operator"):
        steer(site(clock, held=True, backend=Forbidding), clock, sjf, lines)
    assert len(lines) == 1


class Stubborn(SimulatedBackend):
    """It starts nothing that was released, as if what is free were none of the job's."""

    def _start_waiting(self):
        pass


def test_a_released_job_that_does_not_start_is_held_again(clock, sjf):
    backend, lines = site(clock, held=True, backend=Stubborn), []
    steerer(backend, looks(backend, clock, most=6), sjf, lines, rehold_s=4).run()
    assert [line["release"] for line in lines[:5]] == [["1"], [], [], [], []]
    assert [line["rehold"] for line in lines[:5]] == [[], [], [], [], ["1"]]
    assert lines[5]["release"] == ["2"]


def test_jobs_without_a_hold_are_held_if_that_is_asked_for(clock, sjf):
    backend, lines = site(clock, held=False, backend=Stubborn), []
    ticks = looks(backend, clock, most=2)
    how = Steering(act=True, hold_new=True)
    Steerer(backend, ticks, sjf, "", Limits(), how, lines.append).run()
    assert lines[0]["hold"] == ["1"]
    assert lines[1]["release"] == ["1"]


def test_in_priority_mode_jobs_are_ranked_in_the_policy_s_order():
    jobs = tuple(
        SiteJob(str(k), WAITING, "", "", "", k, 0, limit, 4, 0, 0, 1, 100 + k)
        for k, limit in enumerate([50, 20, 90])
    )
    ranked = []

    class Site(SimulatedBackend):
        def __init__(self):
            pass

        def read(self):
            return Snapshot(100, jobs, (SiteNode("a", 4, 0, 0, 0, 0, 0),))

        def rank(self, priorities):
            ranked.extend(priorities)

    def by_limit(queue):
        return Advice((), {job.job: 100 + job.limit for job in queue.waiting})

    ticks = Ticks(Site(), ranked.append, tick_s=1.0, most=1)
    how = Steering(mode=PRIORITY, act=True)
    Steerer(Site(), ticks, by_limit, "", Limits(), how, lambda entry: None).run()
    values = dict(ranked)
    assert values["1"] > values["0"] > values["2"]


def test_users_are_hidden_where_that_is_asked_for(clock):
    class Named(SimulatedBackend):
        def read(self):
            job = SiteJob("1", HELD, "", "ann", "main", 0, 0, 9, 1, 0, 0)
            return Snapshot(0, (job,), ())

    (job,) = looks(site(clock, True, backend=Named), clock, hide_users=True).look()[0].jobs
    assert job.user.startswith("user-")
    assert "ann" not in job.user
