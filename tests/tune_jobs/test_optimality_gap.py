"""``optimality-gap``: policies against the best in hindsight, on the same jobsets."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, summarize
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from rllib_configs.config.loading import load_config
from tests.tune_jobs.drawing import texts
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.figure import command
from tune_jobs.figures import optimality_gap
from tune_jobs.recipes.deeprm import IN_HINDSIGHT
from tune_jobs.recipes.hindsight import _complete
from tune_jobs.tables.frames import number, read_table, write_table

pytestmark = pytest.mark.usefixtures("as_in_plans")

JOBSETS = 5
Cells = dict[str, str]


def run(*args: str) -> Result:
    return CliRunner().invoke(command, ["optimality-gap", *args], catch_exceptions=False)


@pytest.fixture(scope="module", autouse=True)
def in_this_process() -> Iterator[None]:
    """Without processes, which take seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tune_jobs.figures.registry.num_local_cpus", lambda: 1)
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The figure of two seeds of one experiment, on a small cluster."""
    pytest.importorskip("ortools", reason="needs the extra clairvoyant")
    folder = tmp_path_factory.mktemp("gap")
    for seed in range(2):
        make_run(folder / "runs" / f"small-s{seed}", "name=small", seed=seed)
    sizes = ("--jobsets", str(JOBSETS), "--episodes", "2", "--time-limit", "1")
    result = run("--runs", f"{folder}/runs/*", *sizes, "--out", str(folder))
    assert "drawn from" in result.stdout
    return folder / "optimality-gap.csv"


def rows_of(table: Path, series: str) -> list[Cells]:
    rows = read_table(table, optimality_gap.COLUMNS)
    return [row for row in rows if row["series"] == series]


def test_it_holds_every_policy_and_its_jobsets(table: Path) -> None:
    keys = [*IN_HINDSIGHT, "small"]
    assert [row["key"] for row in rows_of(table, "policy")] == keys
    assert [(row["key"], row["jobset"]) for row in rows_of(table, "jobset")] == [
        (key, str(jobset)) for key in keys for jobset in range(JOBSETS)
    ]
    small = rows_of(table, "policy")[-1]
    assert (small["seeds"], small["interval_over"]) == ("2", "seeds and jobsets")


def test_means_are_pooled_over_the_jobs_of_held_out_jobsets(table: Path) -> None:
    task = load_config("deeprm", SMALL_TASK).task
    jobsets = sample_jobsets(task.build_workload(), 0, Split.HELD_OUT, range(JOBSETS))
    world = task.world
    mean = evaluate(get_heuristic("sjf", world), jobsets, world).slowdown.mean()
    sjf = next(row for row in rows_of(table, "policy") if row["key"] == "sjf")
    assert number(sjf, "value") == pytest.approx(mean)
    means = summarize(evaluate(get_heuristic("sjf", world), jobsets, world)).means
    for name in ("utilization", "wait", "longest_wait", "completion_time", "slowdown_small"):
        assert number(sjf, name) == pytest.approx(means[name])
    each = [row for row in rows_of(table, "jobset") if row["key"] == "sjf"]
    jobs = np.array([number(row, "num_jobs") for row in each])
    for name in ("value", "best", "bound"):
        pooled = np.array([number(row, name) for row in each]) @ jobs / jobs.sum()
        assert number(sjf, name) == pytest.approx(pooled)


def test_no_policy_is_better_than_the_best_in_hindsight(table: Path) -> None:
    for row in rows_of(table, "jobset") + rows_of(table, "policy"):
        assert number(row, "bound") <= number(row, "best") <= number(row, "value") + 1e-9
        assert number(row, "ratio") == pytest.approx(number(row, "value") / number(row, "best"))
    for row in rows_of(table, "policy"):
        assert number(row, "ratio_low") <= number(row, "ratio") <= number(row, "ratio_high")


def test_what_is_proven_is_counted_and_shown(table: Path) -> None:
    sjf = [row for row in rows_of(table, "jobset") if row["key"] == "sjf"]
    assert {row["status"] for row in sjf} == {"optimal"}
    assert {row["proven"] for row in rows_of(table, "policy")} == {str(JOBSETS)}
    shown = texts(optimality_gap.draw(table))
    assert "Mean slowdown relative to the best schedule in hindsight, at load 70%" in shown
    flat = shown.replace("\n", " ")
    assert "5 unseen jobsets, 5 of them proven optimal in 1 s each; arrival window 12" in flat
    assert "small\n(trained at 70%, 2 seeds)\nutil " in shown
    lines = markdown_of(table).splitlines()
    assert lines[2].startswith("| Policy | Mean slowdown [95%] | Over the best in hindsight")
    assert len(lines[4:]) == len(rows_of(table, "policy"))
    row = rows_of(table, "policy")[-1]
    assert f"| {number(row, 'utilization'):.1%} |" in lines[-1]


def test_what_is_not_proven_shows_how_low_the_optimum_may_be(table: Path, tmp_path: Path) -> None:
    rows = read_table(table, optimality_gap.COLUMNS)
    changed = [{**row, "proven": "3", "best": "1.5", "bound": "1.2"} for row in rows]
    write_table(tmp_path / "table.csv", changed)
    figure = optimality_gap.draw(tmp_path / "table.csv")
    flat = texts(figure).replace("\n", " ")
    assert "3 of them proven optimal in 1 s each (band: down to the bound, 1.20)" in flat
    band = figure.axes[0].patches[0].get_extents().transformed(
        figure.axes[0].transData.inverted()
    )  # fmt: skip
    assert (band.x0, band.x1) == pytest.approx((0.8, 1.0))


def test_a_schedule_that_did_not_finish_is_not_taken_for_one_of_all_jobs() -> None:
    """Its jobs without a start would count as the earliest of all, where the search begins."""
    task = load_config("deeprm", SMALL_TASK).task
    jobsets = sample_jobsets(task.build_workload(), 0, Split.HELD_OUT, range(JOBSETS))
    sjf = get_heuristic("sjf", task.world)
    schedule = evaluate(sjf, jobsets, task.world)
    last = [int(schedule.finish[schedule.episode == k].max()) for k in range(JOBSETS)]
    limit = sorted(last)[2]
    cut = evaluate(sjf, jobsets, replace(task.world, max_time=limit))
    assert not cut.finished.all()
    complete = dict(_complete(cut))
    assert list(complete) == [k for k in range(JOBSETS) if last[k] <= limit]
    assert all((starts >= 0).all() for starts in complete.values())


def test_under_the_objective_completion_time_that_is_compared(tmp_path: Path) -> None:
    pytest.importorskip("ortools", reason="needs the extra clairvoyant")
    settings = [arg for change in SMALL_TASK for arg in ("--set", change)]
    settings += ["--set", "task.objective=completion_time"]
    run(*settings, "--jobsets", "2", "--time-limit", "1", "--out", str(tmp_path))
    assert rows_of(tmp_path / "optimality-gap.csv", "policy")[0]["metric"] == "completion_time"
    shown = texts(optimality_gap.draw(tmp_path / "optimality-gap.csv"))
    assert "Mean completion time (steps) relative to the best schedule in hindsight" in shown


def test_without_the_solver_nothing_is_evaluated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    monkeypatch.setattr("tune_jobs.measuring.evaluating.evaluate", pytest.fail)
    with pytest.raises(InputError, match="OR-tools, which is not installed"):
        run("--out", str(tmp_path))


def test_a_search_needs_time() -> None:
    result = CliRunner().invoke(command, ["optimality-gap", "--time-limit", "0"])
    assert result.exit_code == 2
    assert "0 is no time from 0.001 s" in result.stderr
