"""Each job of a log has its own numbers, in whatever order a schedule lists the jobs."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.evaluation.metrics import wait
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.worlds import get_heuristic
from tests.tune_jobs.replaying.site_log import write_site_log
from tune_jobs.replaying.choices import task_of_log
from tune_jobs.replaying.effects import Side
from tune_jobs.replaying.outcomes import as_recorded, by_user

Played = tuple[RecordedJobs, Schedule]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The jobs of a log, and their schedule, whose jobs stand in the order of their starts."""
    log = write_site_log(tmp_path_factory.mktemp("site") / "jobs.csv", 200)
    task, jobs, _ = task_of_log(log, (), {"processors": 16, "gpus": 4}, guess=False)
    rule = get_heuristic("sjf:easy", task.world)
    schedule = evaluate(rule, task.jobsets(Split.HELD_OUT, [0]), task.world)
    order = np.argsort(schedule.start, kind="stable")
    columns = ("episode", "job", "arrival", "start", "finish", "duration", "demand")
    return jobs, replace(schedule, **{name: getattr(schedule, name)[order] for name in columns})


def test_a_recorded_schedule_has_the_wait_of_each_job(played: Played) -> None:
    jobs, schedule = played
    waits = np.arange(jobs.num_jobs) * 7
    recorded = as_recorded(replace(jobs, wait=waits), schedule)
    assert recorded is not None
    assert wait(recorded).tolist() == waits[schedule.job].tolist()
    assert as_recorded(replace(jobs, wait=None), schedule) is None


def test_a_side_has_the_wait_of_each_job_in_its_place(played: Played) -> None:
    _, schedule = played
    count = schedule.job.size
    place = np.random.default_rng(0).permutation(count)
    place[place >= count - 20] = -1  # these do not count
    edges = np.array([0, int(schedule.window[0])])
    side = Side.of("now", schedule, place, edges)
    kept = place[schedule.job] >= 0
    assert side.wait[place[schedule.job[kept]]].tolist() == wait(schedule)[kept].tolist()
    assert side.wait.size == count - 20


def test_users_with_most_work_stand_first(played: Played) -> None:
    jobs, schedule = played
    (sheet,) = by_user({"sjf:easy": schedule}, jobs)
    shares = [row["of_work"] for row in sheet.rows]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0)
    work = schedule.duration * schedule.demand[:, 0].astype(float)
    for row in sheet.rows:
        mine = jobs.names["user"][jobs.ids["user"]][schedule.job] == row["user"]
        assert row["of_work"] == pytest.approx(work[mine].sum() / work.sum())
        assert row["mean_wait sjf:easy"] == pytest.approx(wait(schedule)[mine].mean())
