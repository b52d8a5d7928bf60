"""What is said of a log, against a log of four jobs worked by hand."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.workloads.csv_jobs import read_csv_jobs
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.replaying import description

DAY, WEEK = 86_400, 7 * 86_400
AS_RECORDED = "as recorded"


@pytest.fixture
def jobs(tmp_path: Path) -> RecordedJobs:
    """On four processors: two jobs in the first week, one in the second, one in the third."""
    rows = (
        (0, WEEK // 2, WEEK, 4, "ann", 0),
        (DAY, DAY, DAY, 2, "bob", 3 * DAY),
        (WEEK, 2 * DAY, DAY, 1, "ann", 0),
        (2 * WEEK, DAY, 2 * DAY, 3, "ann", 0),
    )
    lines = [
        "arrival,duration,estimate,processors,user,wait",
        *(",".join(map(str, r)) for r in rows),
    ]
    (tmp_path / "jobs.csv").write_text("\n".join(lines))
    return read_csv_jobs(tmp_path / "jobs.csv")


@pytest.fixture
def played(jobs: RecordedJobs) -> description.Played:
    assert jobs.wait is not None
    return description.Played(jobs.start, jobs.wait, AS_RECORDED)


def test_weeks(jobs: RecordedJobs, played: description.Played) -> None:
    weeks = description.by_week(jobs, (4,), played).rows
    assert [row["jobs"] for row in weeks] == [2, 1, 1]
    # 4 processors for half a week and 2 for a day came in the first week, 1 for 2 days in the next.
    assert weeks[0]["load"] == pytest.approx(1 / 2 + 2 / 7 / 4)
    assert weeks[1]["load"] == pytest.approx(2 / 7 / 4)
    # All of it was served in the week in which it came.
    assert weeks[0]["utilization"] == pytest.approx(1 / 2 + 2 / 7 / 4)
    assert weeks[0]["mean_queue"] == pytest.approx(3 / 7)
    assert [row["longest_wait"] for row in weeks] == [3 * DAY, 0, 0]


def test_facts(jobs: RecordedJobs, played: description.Played) -> None:
    facts = {name: value for name, (value, _) in description.facts(jobs, (4,), played).items()}
    assert facts["jobs"] == 4
    assert facts["users"] == 2
    assert facts["mean wait, as recorded"] == 3 * DAY / 4
    work = 4 * WEEK / 2 + 2 * DAY + 2 * DAY + 3 * DAY
    assert facts["load of processors"] == pytest.approx(work / 4 / (2 * WEEK + 1))
    before_the_last = work - 3 * DAY
    assert facts["utilization of processors, as recorded"] == pytest.approx(
        before_the_last / 4 / (2 * WEEK), rel=1e-5
    )


def test_sizes_users_and_estimates(jobs: RecordedJobs, played: description.Played) -> None:
    sizes = {row["processors"]: row for row in description.by_size(jobs, (4,)).rows}
    assert {name: row["jobs"] for name, row in sizes.items()} == {"1": 1, "2 to 3": 2, "4": 1}
    users = description.by_name(jobs, "user", played)
    assert users is not None
    assert [(row["user"], row["jobs"]) for row in users.rows] == [("ann", 3), ("bob", 1)]
    assert users.rows[1]["mean_wait"] == 3 * DAY
    shares = {row["what"]: row["share"] for row in description.estimates(jobs).rows}
    assert shares["estimate is the run time"] == 0.25
    assert shares["estimate is longer than the run time"] == 0.5
    assert shares["job runs longer than its estimate"] == 0.25
    assert shares["run time over estimate, mean"] == pytest.approx((0.5 + 1 + 2 + 0.5) / 4)
    assert description.by_name(jobs, "queue", played) is None


def test_quantiles(jobs: RecordedJobs, played: description.Played) -> None:
    times, sizes = description.spread(jobs, played)
    run = next(row for row in times.rows if row["of"] == "run time")
    assert run["least"] == DAY
    assert run["most"] == WEEK / 2
    assert run["mean"] == pytest.approx(np.mean([WEEK / 2, DAY, 2 * DAY, DAY]))
    assert sizes.rows[0]["mean"] == 2.5


def test_a_picture_has_all_panels(jobs: RecordedJobs, played: description.Played) -> None:
    points = description.points(jobs, (4,), played)
    panels = {str(point["panel"]) for point in points}
    assert panels == {"weeks", "queue", "times", "sizes", "estimates", "hours"}
    for panel in ("estimates", "hours"):
        shares = [float(point["y"]) for point in points if point["panel"] == panel]
        assert sum(shares) == pytest.approx(1)
