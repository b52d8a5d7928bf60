"""Pictures of schedules: what their tables hold, and which time of the log they show."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.swf import write_swf
from tests.tune_jobs.drawing import texts
from tune_jobs import cli
from tune_jobs.commands.logs import Replay
from tune_jobs.figures.pictures import with_pictures
from tune_jobs.replaying.replay_report import replay_log
from tune_jobs.replaying.stretch import OPEN, Stretch, readable, stretch_of
from tune_jobs.tables.report import Report
from tune_jobs.terminal.progress import NoProgress

pytestmark = pytest.mark.rendered

FIRST = int(datetime(2024, 3, 1, 6, tzinfo=UTC).timestamp())
DAY_S = 86_400
POLICIES = ("fcfs:easy", "saf:easy")
Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty days of a small site, 1,500 jobs; in the third week it is full."""
    rng = np.random.default_rng(3)
    submit = np.sort(rng.integers(0, 30 * DAY_S, 1500))
    run = rng.integers(60, 5400, 1500)
    run[(submit > 14 * DAY_S) & (submit < 21 * DAY_S)] *= 3
    columns = {"submit": submit - submit[0], "run": run, "requested_time": 2 * run}
    columns |= {"wait": rng.integers(0, 24 * 3600, 1500), "user": rng.integers(0, 12, 1500)}
    columns |= {"processors": rng.integers(1, 33, 1500)}
    path = tmp_path_factory.mktemp("logs") / "site.swf"
    write_swf(path, columns, {"MaxProcs": 64, "UnixStartTime": FIRST})
    return path


@pytest.fixture(scope="module")
def report(log: Path) -> Report:
    return with_pictures(replay_log(Replay(path=log, policies=POLICIES), NoProgress()))


def schedule(report: Report, name: str) -> pd.DataFrame:
    return report[f"schedule-{name}"]


def test_waits_by_size_and_hour_are_those_of_the_schedules(report: Report) -> None:
    waits, jobs = report["waits"], schedule(report, "saf-easy")
    assert list(waits["policy"].unique()) == ["as recorded", *POLICIES]
    hours = [datetime.fromtimestamp(FIRST + at, UTC).hour for at in jobs["submit"]]
    inside = jobs["processors"].between(16, 31) & (np.array(hours) // 3 == 4)
    (row,) = waits.query("policy == 'saf:easy' and size == '16 to 31' and hour == 12").to_dict(
        "records"
    )
    assert row["jobs"] == inside.sum() > 5
    assert row["mean_wait"] == pytest.approx(jobs.loc[inside, "wait"].mean())
    assert (waits.groupby("policy")["jobs"].sum() == 1500).all()


def test_the_groups_of_a_queue_add_up_to_all_that_waits(report: Report) -> None:
    groups, lines = report["waiting-by-user"], report["timeline"]
    for policy, part in groups.groupby("policy"):
        total = part.groupby("begin_s")["queue"].sum().to_numpy()
        assert total == pytest.approx(lines[lines["policy"] == policy]["queue"].to_numpy())
        assert part["group"].nunique() == 7  # six users and the others
    most = schedule(report, "as-recorded").groupby("user")["wait"].sum().nlargest(6)
    assert set(groups["group"]) == {*map(str, most.index), "others"}


def test_changes_are_those_of_each_job_against_the_record(report: Report) -> None:
    changes = report["changes"]
    assert set(changes["against"]) == {"as recorded"}
    before, after = (
        schedule(report, name).set_index("line") for name in ("as-recorded", "saf-easy")
    )
    change = after["wait"] - before["wait"].reindex(after.index)
    of_policy = changes[changes["policy"] == "saf:easy"]
    weights = of_policy["jobs"]
    assert weights.sum() == 1500
    assert np.average(of_policy["earlier"], weights=weights) == pytest.approx((change < -60).mean())
    assert np.average(of_policy["later"], weights=weights) == pytest.approx((change > 60).mean())
    assert np.average(of_policy["change"], weights=weights) == pytest.approx(change.mean())


def test_without_a_record_changes_are_against_the_first_policy(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,duration,processors\n" + "0,100,1\n5,10,2\n6,50,2\n7,10,1\n")
    options = Replay(path=path, policies=POLICIES, task_options={"processors": 2})
    report = replay_log(options, NoProgress())
    assert set(report["changes"]["against"]) == {"fcfs:easy"}
    assert "as recorded" not in set(report["timeline"]["policy"])
    assert not [name for name in report.pictures if name.startswith("waiting")]  # one user


def test_all_charts_of_a_long_log_show_the_week_in_which_most_is_in_use(report: Report) -> None:
    """Its days begin at midnight; recorded and simulated ones lie side by side."""
    charts = [report.figure(name) for name in report.pictures if name.startswith("gantt")]
    assert len(charts) == 3
    limits = [chart.axes[0].get_xlim() for chart in charts]
    assert len(set(limits)) == 1
    begin, end = (datetime.fromtimestamp(x * DAY_S, UTC) for x in limits[0])
    assert (end - begin).days == 7
    assert (begin.hour, begin.minute) == (0, 0)
    assert datetime(2024, 3, 14, tzinfo=UTC) <= begin <= datetime(2024, 3, 17, tzinfo=UTC)
    why = "The week with most processors in use as recorded (--from, --to: others)"
    for chart in charts:
        assert why in " ".join(texts(chart).split())
        assert set(chart.axes[0].get_yticks()) >= {0, 16, 32, 48, 64}
        assert 8 not in chart.axes[0].get_yticks()
        assert "UTC" in chart.axes[0].get_xlabel()
    counted = re.search(r"([\d,]+) jobs", texts(charts[0]))
    jobs = schedule(report, "as-recorded")
    start, x = jobs["start"] + FIRST, np.array(limits[0]) * DAY_S
    inside = (start < x[1] - 1) & (start + jobs["duration"] > x[0] + 1)
    assert counted is not None
    assert int(counted[1].replace(",", "")) == inside.sum()


def test_pictures_show_what_lies_between_two_dates(log: Path) -> None:
    options = Replay(path=log, policies=POLICIES[:1], since="2024-03-04", until="5d")
    report = with_pictures(replay_log(options, NoProgress()))
    begin, end = 3 * DAY_S - 6 * 3600, 5 * DAY_S
    for name in ("timeline", "waiting-by-user"):
        assert (report[name]["begin_s"].min(), report[name]["end_s"].max()) == (begin, end)
    expected = ((FIRST + begin) / DAY_S, (FIRST + end) / DAY_S)
    for name in ("timeline", "waiting-by-user", "gantt-as-recorded", "gantt-fcfs-easy"):
        assert report.figure(name).axes[0].get_xlim() == pytest.approx(expected)


def test_what_was_recorded_stands_beside_what_is_simulated(report: Report) -> None:
    figure: Figure = report.figure("timeline")
    labels = [line.get_label() for line in figure.axes[1].get_lines()]
    assert labels[:3] == ["as recorded", *POLICIES]
    assert "Waiting jobs by user" in texts(report.figure("waiting-by-user"))
    assert "Who starts earlier or later than as recorded" in texts(report.figure("changes"))
    assert "16-31" in [text.get_text() for text in report.figure("waits").axes[0].get_yticklabels()]


def test_a_short_log_is_shown_as_a_whole(report: Report) -> None:
    played = {"fcfs": schedule(report, "fcfs-easy")}
    short = Stretch(0, 14 * DAY_S)
    assert readable(played, short, FIRST) == short
    few = {"fcfs": played["fcfs"].head(900)}
    assert readable(few, Stretch(0, 300 * DAY_S), None) == Stretch(0, 300 * DAY_S)
    assert readable(played, Stretch(20 * DAY_S, 30 * DAY_S), FIRST).begin == 20 * DAY_S


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3600", 3600),
        ("1.5d", 129_600),
        ("2024-03-02", 18 * 3600),
        ("2024-03-02T07:30", 25 * 3600 + 1800),
        ("2024-03-02T07:30+01:00", 24 * 3600 + 1800),
        ("2023-01-01", 0),
    ],
)
def test_times_are_dates_or_count_from_the_first_submission(
    log: Path, text: str, seconds: int
) -> None:
    assert stretch_of(read_log(log), text, "") == Stretch(seconds, OPEN)


def test_times_that_are_none_are_refused_before_anything_is_played(
    log: Path, tmp_path: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tune_jobs.replaying.replay_report.play", lambda *_: pytest.fail("it plays already")
    )
    refused = {
        ("--from", "soon"): "--from takes a date such as 2024-03-01, seconds since the first",
        ("--to", "3x"): "--to takes a date",
        ("--from", "4d", "--to", "2d"): "nothing of the log lies between --from 4d and --to 2d",
        ("--from", "2025-01-01"): "from 2024-03-01 to 2024-03-31",
        ("--to", "2024-02-01"): "nothing of the log lies between --from its beginning",
    }
    for words, said in refused.items():
        line = ["replay", str(log), "--policies", "fcfs", "--out", str(tmp_path / "out"), *words]
        assert cli.run(cli.metasched, line) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
    assert cli.run(cli.metasched, ["replay", str(log), "--from", "1d"]) == 2
    assert "give --out FOLDER" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_log_without_dates_takes_none(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,duration,processors\n0,100,1\n500,10,2\n")
    jobs = read_log(path)
    assert stretch_of(jobs, "5", "") == Stretch(5, OPEN)
    with pytest.raises(InputError, match="does not say on which date it begins, so --from takes"):
        stretch_of(jobs, "2024-03-01", "")


def test_what_a_policy_gains_on_the_record_is_not_all_its_own(log: Path, capsys: Shown) -> None:
    """Waits of this site are drawn: no rule explains them."""

    def replayed(*policies: str) -> dict:
        line = ["replay", str(log), "--policies", ",".join(policies), "--json"]
        assert cli.run(cli.metasched, line) == 0
        return json.loads(capsys.readouterr().out)

    both, alone = replayed("fcfs:easy", "saf:easy"), replayed("saf:easy")
    for found in (both, alone):  # the rule is played beside the policy if nobody asked for it
        trust = found["trust"]
        assert (trust["grade"], trust["policy"]) == ("poor", both["trust"]["policy"])
        (said,) = [line for line in found["remarks"] if "gains on the record" in line]
        assert re.match(r"Compare policies with fcfs:easy, .* saf:easy gains on the record, ", said)
    means = {row["policy"]: row["mean_wait"] for row in both["replay"]}
    assert both["trust"]["recorded"] == pytest.approx(means["as recorded"])
    assert both["trust"]["simulated"] == pytest.approx(means["fcfs:easy"])
    assert {row["policy"] for row in alone["replay"]} == {"as recorded", "saf:easy"}
