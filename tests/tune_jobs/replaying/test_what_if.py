"""What-ifs: both sides are the replay's, the changes are those of the same jobs, and who gains."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from cluster_env.core.amounts import amount, whole_amount
from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import Pooled
from tests.tune_jobs.replaying import partitioned_log
from tests.tune_jobs.replaying.partitioned_log import SITE, write_partitioned_log
from tests.tune_jobs.replaying.site_log import write_site_log
from tune_jobs import cli
from tune_jobs.replaying.changes import Setup, changed
from tune_jobs.replaying.choices import task_of_log
from tune_jobs.replaying.effects import DAY_S, Periods, Side, changes, of_groups
from tune_jobs.replaying.fidelity import Trust

MACHINE = ("--processors", "16", "--gpus", "4")
SHOWN = (
    *("bounded_slowdown", "mean_wait", "median_wait", "wait_95", "longest_wait"),
    "utilization",
)
Out = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site_log(tmp_path_factory.mktemp("site") / "jobs.csv", 400)


def asked(capsys: Out, *words: object) -> dict[str, Any]:
    assert cli.run(cli.metasched, [*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_both_sides_are_those_of_the_replay(log: Path, capsys: Out) -> None:
    replayed = asked(capsys, "replay", log, *MACHINE, "--policies", "fcfs:easy,sjf:easy")
    found = asked(capsys, "whatif", log, *MACHINE, "--change", "policy=sjf:easy")
    rows = {row["policy"]: row for row in replayed["replay"]}
    sides = {row["side"]: row for row in found["now-and-then"]}
    for side, policy in (("now", "fcfs:easy"), ("then", "sjf:easy")):
        for name in SHOWN:
            assert sides[side][name] == pytest.approx(rows[policy][name]), (side, name)
    for name in SHOWN:
        assert sides["change"][name] == pytest.approx(sides["then"][name] - sides["now"][name])
    for name in set(SHOWN) - {"longest_wait"}:
        assert sides["from"][name] <= sides["to"][name]
    assert sides["from"]["mean_wait"] < sides["change"]["mean_wait"] < sides["to"]["mean_wait"]


def test_a_change_to_the_machine_is_a_replay_of_the_changed_machine(log: Path, capsys: Out) -> None:
    words = ("--set", "task.workload.scaled_load=0.9")
    found = asked(
        capsys,
        *("whatif", log, *MACHINE, *words, "--policy", "saf:easy"),
        *("--change", "processors=+8", "--change", "gpus=6", "--change", "max-wait=2d", "--each"),
    )
    # The same arrivals as on the machine of today, which the load is scaled for.
    now = asked(capsys, "replay", log, *MACHINE, *words, "--policies", "saf:easy")["replay"][0]
    assert found["now-and-then"][0]["mean_wait"] == pytest.approx(now["mean_wait"])
    task, _, _ = task_of_log(
        log, ["task.workload.scaled_load=0.9"], {"processors": 16, "gpus": 4}, guess=False
    )
    setup = Setup(policy="saf:easy", task_options={"processors": 16, "gpus": 4}, overrides=())
    stretch = changed(setup, ["load=+0%"], task).overrides[0]
    then = asked(
        capsys,
        *("replay", log, "--processors", "24", "--gpus", "6", "--max-wait", "2d"),
        *("--policies", "saf:easy", "--set", stretch),
    )["replay"][0]
    assert found["now-and-then"][1]["mean_wait"] == pytest.approx(then["mean_wait"])
    alone = [row["side"] for row in found["each"]]
    assert alone == ["processors=+8", "gpus=6", "max-wait=2d", "all together"]
    assert found["each"][3]["mean_wait"] == pytest.approx(then["mean_wait"])


def test_without_an_effect_all_changes_are_none(log: Path, capsys: Out) -> None:
    found = asked(capsys, "whatif", log, *MACHINE, "--change", "policy=fcfs:easy")
    for row in found["now-and-then"][2:]:
        assert [row[name] for name in SHOWN if row[name] is not None] == pytest.approx(
            [0.0] * sum(row[name] is not None for name in SHOWN)
        )
    assert {row["change"] for row in found["by-user"]} == {0.0}


def test_groups_add_up_to_all(log: Path, capsys: Out) -> None:
    found = asked(capsys, "whatif", log, *MACHINE, "--change", "processors=+4")
    whole = 400 * found["now-and-then"][2]["mean_wait"]
    assert sum(row["change_in_all"] for row in found["by-user"]) == pytest.approx(whole)
    sizes = found["by-size"]
    assert sum(row["change"] * row["jobs"] for row in sizes) == pytest.approx(whole)
    gains = [row["change_in_all"] for row in found["by-user"]]
    assert gains == sorted(gains)
    assert sum(row["of_work"] for row in found["by-user"]) == pytest.approx(1)


def test_jobs_that_cannot_run_then_fill_the_machine_now(log: Path, capsys: Out) -> None:
    found = asked(capsys, "whatif", log, *MACHINE, "--change", "processors=-8")
    larger = np.loadtxt(log, delimiter=",", skiprows=1, usecols=3) > 8
    assert larger.any()
    assert found["jobs"] == 400 - larger.sum()
    assert any(f"{larger.sum():,} of today's jobs cannot run" in one for one in found["remarks"])
    # On both sides the tables are of the other jobs; today's schedule is that of all.
    now = asked(capsys, "replay", log, *MACHINE, "--policies", "fcfs:easy")
    assert found["now-and-then"][0]["utilization"] == pytest.approx(now["replay"][0]["utilization"])
    then = asked(
        capsys, *("replay", log, "--processors", "8", "--gpus", "4", "--policies", "fcfs:easy")
    )
    assert found["now-and-then"][1]["mean_wait"] == pytest.approx(then["replay"][0]["mean_wait"])


@pytest.mark.rendered
def test_tables_and_a_picture_are_kept(log: Path, tmp_path: Path, capsys: Out) -> None:
    words = ["whatif", str(log), *MACHINE, "--change", "load=+10%", "--out", str(tmp_path)]
    assert cli.run(cli.metasched, words) == 0
    text = capsys.readouterr().out
    assert "Trust in these answers: unknown; the log does not record waits" in text
    assert " of 4 users, longer for " in text
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        *("now-and-then.csv", "by-size.csv", "by-user.csv", "whatif.csv", "whatif.png"),
    }
    assert imread(tmp_path / "whatif.png").std() > 0.05


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Path]:
    """A log of four partitions, and the description of their site."""
    folder = tmp_path_factory.mktemp("partitions")
    write_partitioned_log(folder / "jobs.txt", 250)
    (folder / "site.yaml").write_text(SITE)
    return folder / "jobs.txt", "--site", folder / "site.yaml"


def test_a_site_is_changed_by_its_parts(site: tuple[Path, str, Path], capsys: Out) -> None:
    words = ("--change", "partition.main.nodes=+4", "--change", "qos.normal.processors-per-user=64")
    found = asked(capsys, "whatif", *site, *words, "--change", "policy=sjf:easy")
    now = asked(capsys, "replay", *site, "--policies", "fcfs:easy")["replay"]
    text = SITE.replace("nodes: [c]}", "nodes: [c, more]}").replace("user: 48", "user: 64")
    text = text.replace("partitions:", "- {name: more, count: 4, processors: 16}\npartitions:")
    changed_site = site[2].with_name("changed.yaml")
    changed_site.write_text(text)
    then = asked(capsys, "replay", site[0], "--site", changed_site, *("--policies", "sjf:easy"))[
        "replay"
    ]
    for place, rows in enumerate((now, then)):
        simulated = next(row for row in rows if row["policy"] != "as recorded")
        assert found["now-and-then"][place]["mean_wait"] == pytest.approx(simulated["mean_wait"])
    assert found["trust"]["grade"] == "good"  # the log is of this site
    rows = {row["partition"]: row for row in found["by-partition"]}
    assert rows.keys() == {"main", "long", "fat", "debug"}
    assert rows["main"]["change"] < 0
    whole = 250 * found["now-and-then"][2]["mean_wait"]
    assert sum(row["jobs"] * row["change"] for row in rows.values()) == pytest.approx(whole)


def test_what_it_says_is_what_the_site_does_after_the_change(
    site: tuple[Path, str, Path], monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    """The site's own program, which is not the simulator, schedules the jobs with another limit."""
    found = asked(capsys, "whatif", *site, "--change", "qos.normal.processors-per-user=64")
    means = []
    for limit in (48, 64):
        monkeypatch.setattr(partitioned_log, "MOST_PER_USER", limit)
        jobs = partitioned_log.jobs_of_site(250, 1)
        partitioned_log.schedule_plainly(jobs)
        means.append(np.mean([job.start - job.arrival for job in jobs]))
    now, then, change = (row["mean_wait"] for row in found["now-and-then"][:3])
    assert now == pytest.approx(means[0], rel=0.1)
    assert then == pytest.approx(means[1], rel=0.1)
    assert change == pytest.approx(means[1] - means[0], rel=0.1)


def test_an_outage_makes_jobs_wait(site: tuple[Path, str, Path], capsys: Out) -> None:
    found = asked(capsys, "whatif", *site, "--change", "outage=6h+12h:f")
    change = {row["partition"]: row["change"] for row in found["by-partition"]}
    assert change["fat"] > 600
    assert change["fat"] == max(change.values())  # limits of users hold in all partitions


def test_a_closed_partition_lets_the_others_use_its_limits(
    site: tuple[Path, str, Path], capsys: Out
) -> None:
    found = asked(capsys, "whatif", *site, "--change", "partition.main.available=false")
    assert {row["partition"] for row in found["by-partition"]} == {"long", "fat", "debug"}
    assert found["now-and-then"][2]["mean_wait"] < 0
    assert "of today's jobs cannot run after the change" in " ".join(found["remarks"])


@pytest.mark.parametrize("too_long", ["drop", "cap"])
def test_work_that_disappears_is_said_first(
    site: tuple[Path, str, Path], too_long: str, capsys: Out
) -> None:
    """By hand from the log: a shorter longest time leaves jobs out, or cuts them."""
    log = pd.read_csv(site[0], sep="|")
    main, limit = log.Partition == "main", log.TimelimitRaw * 60
    most = int(limit[main].median())
    words = [*site, "--change", f"partition.main.max-time={most}s"]
    words += ["--change", f"task.workload.too_long={too_long}"]
    found = asked(capsys, "whatif", *words)
    over = main & (limit > most)
    left = (log.ElapsedRaw - most).clip(lower=0) if too_long == "cap" else log.ElapsedRaw
    work, lost = log.ElapsedRaw * log.AllocCPUS, (left * log.AllocCPUS)[over].sum()
    assert lost > 0
    gone = found["work_that_disappears"]
    assert gone["of_work"] == pytest.approx(lost / work.sum())
    assert gone["by_partition"]["main"] == pytest.approx(lost / work[main].sum())
    assert {gone["by_partition"][name] for name in ("long", "fat", "debug")} == {0}
    assert found["jobs"] == 250 - (over.sum() if too_long == "drop" else 0)
    count = gone["impossible"] if too_long == "drop" else gone["shorter"]
    assert count == (over & (left > 0)).sum()
    assert found["now-and-then"][1]["of_work"] == pytest.approx(1 - lost / work.sum())
    assert cli.run(cli.metasched, ["whatif", *map(str, words)]) == 0
    head = capsys.readouterr().out.partition("Now and then")[0]
    assert f"{gone['of_work']:.1%} of all work" in " ".join(head.split())


def test_jobs_are_cut_at_a_site_alone(log: Path, capsys: Out) -> None:
    words = ["whatif", str(log), *MACHINE, "--change", "task.workload.too_long=cap"]
    assert cli.run(cli.metasched, words) == 2
    assert "describe it with --site FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("processors=+16", "change them as in partition.NAME.nodes=+16"),
        ("partition.mian.tier=2", "did you mean 'main'"),
        ("nosuch=1", "partition.NAME.nodes"),
        ("qos.normal.jobs=-1", "has no limit today"),
        ("outage=1h+1h --change load=+10%", "leave out one of the two"),
    ],
)
def test_wrong_changes_of_a_site_are_refused(
    site: tuple[Path, str, Path], change: str, said: str, capsys: Out
) -> None:
    assert cli.run(cli.metasched, ["whatif", *map(str, site), "--change", *change.split()]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [("512", 512), ("+64", 164), ("-64", 36), ("+10%", 110), ("-50%", 50), ("+2.5%", 102.5)],
)
def test_amounts_are_numbers_or_relative_to_today(text: str, number: float) -> None:
    assert amount("processors", text, 100) == pytest.approx(number)


@pytest.mark.parametrize("text", ["10%", "x", "-100", "-100%", "0", "+-3", "1e3", "0.2"])
def test_other_amounts_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        whole_amount("processors", text, 100)


def test_the_load_of_a_log_changes_as_is_said(log: Path) -> None:
    options: dict[str, Any] = {"processors": 16, "gpus": 4}
    task, _, _ = task_of_log(log, [], options, guess=False)
    setup = Setup(policy="fcfs:easy", task_options=options, overrides=())
    workload: Any = task.workload
    for text, load in (("load=+10%", 1.1 * workload.load), ("load=0.5", 0.5)):
        after = changed(setup, [text], task)
        then, _, _ = task_of_log(log, after.overrides, after.task_options, guess=False)
        then_workload: Any = then.workload
        assert then_workload.load == pytest.approx(load, rel=1e-3)


def test_what_was_set_is_replaced_and_not_set_twice(log: Path) -> None:
    overrides = ("task.world.processors=16", "task.world.gpus=4")
    task, _, _ = task_of_log(log, overrides, {}, guess=False)
    setup = Setup(policy="priority:easy", task_options={}, overrides=overrides)
    texts = ["processors=+1", "task.world.priority.age=5", "task.world.max_wait=60"]
    after = changed(setup, texts, task)
    then, _, _ = task_of_log(log, after.overrides, after.task_options, guess=False)
    world: Any = then.world
    assert (world.processors, world.gpus, world.max_wait, world.priority.age) == (17, 4, 60, 5)


@pytest.mark.parametrize(
    ("changes_made", "policy"),
    [
        (["backfilling=skip"], "fcfs:skip"),
        (["backfilling=conservative", "policy=sjf:easy"], "sjf:conservative"),
        (["policy=saf", "backfilling=skip"], "saf"),
        (["policy=saf:strict"], "saf:strict"),
    ],
)
def test_backfilling_is_that_of_the_policy_that_names_it(
    log: Path, changes_made: list[str], policy: str
) -> None:
    options: dict[str, Any] = {"processors": 16, "gpus": 4}
    task, _, _ = task_of_log(log, [], options, guess=False)
    after = changed(Setup(policy="fcfs:easy", task_options={}, overrides=()), changes_made, task)
    assert after.policy == policy


def a_side(wait: np.ndarray, name: str = "one") -> Side:
    ones = np.ones(5)
    return Side(name, 1 + wait / 100, wait, np.ones(wait.size), Pooled(ones, ones))


def test_the_change_of_a_constant_is_certain() -> None:
    rng = np.random.default_rng(0)
    arrival = np.sort(rng.integers(0, 35 * DAY_S, 500))
    periods = Periods.of(arrival, 35 * DAY_S)
    assert (periods.unit, periods.num, periods.enough) == ("weeks", 5, True)
    wait = rng.exponential(100.0, 500)
    found = changes(a_side(wait), a_side(wait + 7), periods)
    for name in ("mean_wait", "median_wait", "wait_95"):
        one = found[name]
        assert (one.value, one.low, one.high) == pytest.approx((7, 7, 7)), name
    assert np.isnan(found["longest_wait"].low)


def test_intervals_of_quantiles_are_as_wide_as_the_weeks_differ() -> None:
    """Then, each week's jobs wait longer by another number: only which weeks are drawn matters."""
    rng = np.random.default_rng(0)
    week = np.repeat(np.arange(20), 50)
    periods = Periods.of(week * 7 * DAY_S, 140 * DAY_S)
    wait = rng.exponential(1.0, week.size)
    found = changes(a_side(wait), a_side(wait + 100.0 * week), periods)
    for name, quantile in (("median_wait", 0.5), ("wait_95", 0.95)):
        drawn = [rng.integers(0, 20, 20) for _ in range(2000)]
        ends = np.quantile([np.quantile(100 * one, quantile) for one in drawn], (0.025, 0.975))
        assert found[name].low == pytest.approx(ends[0], abs=110), name
        assert found[name].high == pytest.approx(ends[1], abs=110), name
    assert found["mean_wait"].low < found["mean_wait"].value < found["mean_wait"].high


@pytest.mark.parametrize(
    ("days", "unit", "enough"), [(60, "weeks", True), (20, "days", True), (3, "days", False)]
)
def test_short_logs_have_intervals_over_days_or_none(days: int, unit: str, enough: bool) -> None:
    arrival = np.linspace(0, days * DAY_S - 1, 200).astype(np.int64)
    periods = Periods.of(arrival, days * DAY_S)
    assert (periods.unit, periods.enough) == (unit, enough)
    assert periods.index.max() + 1 == periods.num
    wait = np.arange(200.0)
    low = changes(a_side(wait), a_side(2 * wait), periods)["mean_wait"].low
    assert np.isfinite(low) == enough


def test_those_who_gain_most_come_first() -> None:
    now, then = a_side(np.array([10.0, 10, 10, 50])), a_side(np.array([9.0, 8, 30, 0]))
    rows = of_groups(now, then, np.array([0, 0, 1, 2]), ["ada", "bob", "cyd"])
    assert [(row["name"], row["change_in_all"]) for row in rows] == [
        ("cyd", -50),
        ("ada", -3),
        ("bob", 20),
    ]


def test_the_grade_is_that_of_the_calibration() -> None:
    rng = np.random.default_rng(0)
    arrival = np.arange(1000) * 3600
    recorded = rng.exponential(20_000, 1000).astype(np.int64)

    def grade(
        simulated: np.ndarray, wait: np.ndarray | None = recorded, as_it_was: bool = True
    ) -> str:
        return Trust.of(arrival, wait, {"fcfs": simulated}, as_it_was=as_it_was).grade

    assert grade(recorded) == "good"
    assert grade((recorded * rng.uniform(0.5, 1.5, 1000)).astype(np.int64)) in ("good", "fair")
    assert grade(rng.permutation(recorded)) == "poor"
    assert grade(recorded, None) == "unknown"
    assert grade(recorded, as_it_was=False) == "unknown"
    late = Trust.of(arrival, recorded, {"fcfs": recorded + 1000}, as_it_was=True)
    assert "smaller than the error of the simulation of today, 16.7 min" in late.too_small(-999)[0]
    assert late.too_small(-1000) == []
    assert "one policy" not in Trust.of(arrival, recorded, {"x": recorded}, as_it_was=True).sentence
    unknown = Trust.of(arrival, None, {"fcfs": recorded}, as_it_was=True).data
    assert unknown["gain"] is None
    assert Trust.of(arrival, None, {"fcfs": recorded}, as_it_was=True).too_small(1) == []
