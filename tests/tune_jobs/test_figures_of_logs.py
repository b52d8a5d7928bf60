"""Figures of rules on job logs and generated jobs: what stands in their files, and in the image."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from cluster_env.core.errors import InputError
from cluster_env.workloads.swf import write_swf
from cluster_env.worlds import get_spec
from tests.tune_jobs.drawing import all_texts, run
from tune_jobs.figures import scenarios
from tune_jobs.figures.registry import make_figure
from tune_jobs.recipes import cunha, ratios
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.scenarios import Scenario, logs_of
from tune_jobs.tables.frames import read_table

pytestmark = pytest.mark.rendered

RECORDED = Path(scenarios.__file__).parent / "recorded"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two users ask for an hour; one of them needs a minute."""
    rng = np.random.default_rng(0)
    count = 2060
    user = rng.integers(0, 2, count)
    run = np.where(user == 0, rng.integers(30, 60, count), rng.integers(2000, 3600, count))
    path = tmp_path_factory.mktemp("logs") / "office.swf"
    columns = {"submit": np.arange(count) * 330, "run": run, "user": user}
    columns |= {"requested_time": np.full(count, 3600), "processors": rng.integers(1, 4, count)}
    write_swf(path, columns, {"MaxProcs": 10})
    return path


def test_every_rule_stands_beside_its_price_on_published_windows(log: Path, tmp_path: Path) -> None:
    result = run("cunha-table5.6", "--trace", str(log), "--out", str(tmp_path))
    assert "cunha-table5.6.png" in result.stdout
    rows = read_table(tmp_path / "cunha-table5.6.csv", ("place", "exhibit"))
    rules = list(get_spec("hpc").heuristics.names())
    assert [row["policy"] for row in rows] == rules
    assert {(row["processors"], row["jobsets"], row["protocol"]) for row in rows} == {
        ("10", "10", "rlscheduler")
    }
    shown = all_texts(scenarios.draw(tmp_path / "cunha-table5.6.csv"))
    assert {"util", "wait", "longest", *rules} <= set(shown)
    assert "office, RLScheduler's windows: 10 jobsets, 10,240 jobs" in shown
    sjf = next(row for row in rows if row["policy"] == "sjf")
    value = float(sjf["bounded_slowdown"])
    assert (f"{value:,.0f}" if value >= 100 else f"{value:.2f}") in shown


def test_the_whole_price_stands_beside_the_headline(log: Path, tmp_path: Path) -> None:
    """In a table of utilization the slowdown is part of it; times are written as people do."""
    run("cunha-table5.7", "--trace", str(log), "--out", str(tmp_path))
    table = tmp_path / "cunha-table5.7.csv"
    shown = all_texts(scenarios.draw(table))
    heads = {"util", "slowdown", "to end", "wait", "longest", "makespan"}
    assert heads | {"narrow", "medium", "wide"} <= set(shown)
    fcfs = next(row for row in read_table(table, ("place",)) if row["policy"] == "fcfs")
    assert get_spec("hpc").presentation.time(float(fcfs["longest_wait"])) in shown
    assert f"{float(fcfs['utilization_to_end']):.1%}" in shown


def test_ratios_are_paired_with_the_best_rule() -> None:
    settings = {"workload.jobs": 60, "world.processors": 32, "workload.load": 0.9}
    tiny = ratios.Ratios("tiny", lambda request: [Scenario("here", "hpc-smoke", settings)])
    rows = {row["key"]: row for row in tiny.collect(FigureRequest(num_jobsets=5))}
    baselines = get_spec("hpc").baselines
    best = rows[str(rows["fcfs"]["best_rule"])]
    assert best["ratio"] == best["ratio_low"] == best["ratio_high"] == 1.0
    assert all(float(rows[name]["ratio"]) >= 1 for name in baselines)
    assert any(float(rows[name]["ratio"]) > 1 for name in baselines)


def test_many_scenarios_are_columns_of_one_table() -> None:
    """The best of each column is bold; rules without their tuned numbers."""
    table = RECORDED / "cunha-table5.10.csv"
    figure = scenarios.draw(table)
    written = {text.get_text(): text for text in figure.findobj(Text)}  # type: ignore[attr-defined]
    rows = read_table(table, ("place",))
    first = [row for row in rows if row["place"] == rows[0]["place"]]
    assert {row["key"] for row in first if row["learned"] == "False"} <= set(written)
    best = min(first, key=lambda row: float(row["bounded_slowdown"]))
    mean, utilization = (float(best[name]) for name in ("bounded_slowdown", "utilization"))
    assert written[written_mean(mean)].get_fontweight() == "bold"
    longest = get_spec("hpc").presentation.time(float(best["longest_wait"]))
    assert f"{utilization:.0%}, {longest}" in written


def written_mean(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def test_a_log_that_is_missing_is_told_before_anything_is_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ratios, "_rows", lambda *_: pytest.fail("it evaluates already"))
    with pytest.raises(InputError, match=r"nope\.swf"):
        make_figure("hpc-families", FigureRequest(traces=[tmp_path / "nope.swf"]), tmp_path)


def test_a_folder_stands_for_its_logs_and_what_is_none_is_left_out(log: Path) -> None:
    (log.parent / "notes.txt").write_text("no log")
    (name, settings), *others = logs_of(FigureRequest(traces=[log.parent]))
    assert (name, settings["workload.path"], others) == ("office", log, [])
    with pytest.raises(InputError, match=r"notes\.txt"):
        list(logs_of(FigureRequest(traces=[log.parent / "notes.txt"])))


def test_a_log_that_ships_is_meant_by_its_name() -> None:
    (row,) = cunha.collect_logs(FigureRequest(traces=[Path("example")]))
    assert (row["log"], row["processors"]) == ("example", 96)


def test_scenarios_of_logs_need_a_log() -> None:
    with pytest.raises(InputError, match="a folder of them, with --trace"):
        next(iter(cunha.TABLE_10.scenarios(FigureRequest())))
