"""What a comparison says of policies: marks, intervals, who counts as a baseline, which seed."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, get_metric, summarize
from cluster_env.evaluation.intervals import Estimate
from cluster_env.worlds import get_heuristic
from rllib_configs.config.loading import load_config
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tune_jobs.measuring.all_weeks import worse_by
from tune_jobs.measuring.comparison import compare
from tune_jobs.measuring.evaluating import trusted
from tune_jobs.measuring.guarding import load_decided
from tune_jobs.measuring.policy_specs import heuristic_spec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.table import format_rows
from tune_jobs.tables.frames import Row

ENDS = st.tuples(st.floats(-9, 9), st.floats(-9, 9)).map(sorted)


def compared(*names: str, seed: int = 5) -> list[Row]:
    task = load_config("deeprm", [*SMALL_TASK, "task.workload.load=1"]).task.build(seed=seed)
    protocol = EvaluationProtocol(task, num_jobsets=12)
    return compare(protocol, list(map(heuristic_spec, names)), protocol.values())


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return compared("sjf", "random")


def mark_of(row: Row, rows: list[Row]) -> str:
    shown = format_rows([{**rows[0], "best": True}, row]).splitlines()
    (line,) = [line for line in shown if "random" in line and "[" in line]
    return line.partition("random")[0].strip()


@given(ENDS)
def test_a_mark_says_whether_the_interval_of_the_difference_includes_0(
    rows: list[Row], ends: list[float]
) -> None:
    low, high = ends
    row = {**rows[1], "best": False, "difference_low": low, "difference_high": high}
    assert mark_of(row, rows) == ("~" if low <= 0 <= high else "")
    assert mark_of({**row, "disjoint_windows": 4}, rows) == ""
    assert mark_of({**row, "best": True}, rows) == ">"
    assert mark_of({**row, "best": True, "disjoint_windows": 4}, rows) == ""


@pytest.mark.parametrize("windows", [None, 0, 4, 5, 9])
def test_few_windows_of_a_log_have_no_interval(windows: int | None) -> None:
    estimate = trusted(Estimate(2.0, 1.0, 3.0, "jobsets"), windows)
    few = windows is not None and windows < 5
    assert math.isnan(estimate.low) == math.isnan(estimate.high) == few
    assert estimate.value == 2.0


@given(st.sampled_from(["wait", "utilization", "slowdown"]), st.floats(0.1, 9), st.floats(0.1, 9))
def test_a_policy_is_worse_by_a_share_where_its_metric_ranks_behind(
    metric: str, value: float, reference: float
) -> None:
    rank, worse = get_metric(metric).rank, worse_by(metric, value, reference)
    assert (worse > 0) == (rank(value) > rank(reference))
    assert abs(worse) == pytest.approx(abs(value / reference - 1))


def test_what_is_no_baseline_changes_no_win_rate() -> None:
    names = ("packer", "random")
    alone, among = compared(*names), compared(*names, "hold:1", "easy")
    assert among[0]["slowdown"] > among[2]["slowdown"]  # better than the only baseline
    assert [row["win_rate"] for row in among[:2]] == [row["win_rate"] for row in alone]
    assert alone[0]["win_rate"] == 1.0 > alone[1]["win_rate"] > 0.0


def test_policies_draw_by_the_seed_of_the_protocol() -> None:
    task = load_config("deeprm", [*SMALL_TASK, "task.workload.load=1"]).task.build(seed=5)
    jobsets, random = task.jobsets(Split.HELD_OUT, range(12)), get_heuristic("random", task.world)
    means = [
        summarize(evaluate(random, jobsets, task.world, run_seed=seed)).means["slowdown"]
        for seed in (5, 0)
    ]
    assert means[0] != means[1]
    assert compared("random")[0]["slowdown"] == pytest.approx(means[0])


@pytest.mark.parametrize("decode", ["argmax", "sample"])
def test_a_decision_is_read_with_the_way_to_act_that_it_was_made_for(
    decode: str, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run")
    world = load_config("deeprm", SMALL_TASK).to_dict()["task"]["world"]
    data = {"use": "policy", "run": str(run), "decode": decode, "world": world, "limits": {}}
    (tmp_path / "made.json").write_text(json.dumps({**data, "objective": "slowdown"}))
    assert load_decided(tmp_path / "made.json").decode == decode
