"""`metasched.choose`: runs are judged as they were trained, on jobsets that none has seen."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, get_metric
from cluster_env.evaluation.metrics import episode_means
from rllib_configs.config.loading import load_config
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import load_policy, read_weights, write_policy
from rllib_configs.search_problem import FIXED, SearchProblem
from tests.tune_jobs.untrained_runs import UNLIMITED, make_run
from tune_jobs.commands.comparing import Choose
from tune_jobs.measuring.trained_runs import find_runs
from tune_jobs.runs.choosing import choose_run
from tune_jobs.tables.report import Report

SMALL = ("task.workload.jobs=30", "training.family=''", "training.mode=strict", *UNLIMITED)
LIMITS = ("training.limits.wait=0.1", "training.reference=fcfs")


SHORT, LONG = 1.0, -1.0
"""What is first under a policy, by the weight of the estimate."""


def make(folder: Path, seed: int, first: float, *changes: str) -> Path:
    """A run whose policy starts the shortest or the longest job."""
    config = load_config("hpc-order", [*SMALL, *changes, f"seed={seed}"])
    shapes = network_of(config).shapes(config, config.task.world)
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    weights["network.job"][0] = first
    write_policy(weights, config, folder / f"run-{seed}" / "policy")
    return folder / f"run-{seed}"


def call(*runs: Path | str, **options: Any) -> Report:
    return choose_run(Choose([str(run) for run in runs], **options))


def rows_of(report: Report) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = report["runs"].to_dict("records")
    return rows


def test_the_run_that_costs_least_is_written(tmp_path: Path) -> None:
    runs = [make(tmp_path, 0, LONG), make(tmp_path, 1, SHORT)]
    rows = rows_of(call(*runs, num_jobsets=8, seed=7))
    source = SearchProblem(read_weights(runs[0])[1].model_copy(update={"seed": 7}))
    for row, run in zip(rows, runs, strict=True):
        ((_, world, jobsets, _),) = source.draw(Split.HELD_OUT, range(8))
        schedule = evaluate(load_policy(run)[0], jobsets, world)
        costs = episode_means(get_metric("bounded_slowdown"), schedule)
        assert row["cost"] == row["judged"] == pytest.approx(np.log(costs).mean())
    best = min(rows, key=lambda row: row["cost"])
    other = max(rows, key=lambda row: row["cost"])
    assert best["less_best"] == 0
    assert other["less_best"] == pytest.approx(other["cost"] - best["cost"])
    text = repr(call(*runs, num_jobsets=8, seed=7, out=tmp_path / "best"))
    assert "Not significantly different" not in text
    assert f">  {best['run']}" in text
    assert {path.name for path in (tmp_path / "best").iterdir()} == {"config.yaml", "weights.json"}
    kept, config = read_weights(tmp_path / "best")
    assert config.seed == best["seed"]
    expected = read_weights(tmp_path / best["run"])[0]
    assert all(np.array_equal(kept[name], expected[name]) for name in expected)


def test_runs_that_chance_alone_orders_are_named(tmp_path: Path) -> None:
    runs = [make(tmp_path, 0, SHORT), make(tmp_path, 1, SHORT), make(tmp_path, 2, LONG)]
    text = repr(call(*runs, num_jobsets=8, seed=7))
    assert "Not significantly different from run-0, paired by jobsets: run-1. Other" in text


def test_what_is_beyond_a_limit_counts(tmp_path: Path) -> None:
    runs = [make(tmp_path, 0, LONG, *LIMITS), make(tmp_path, 1, SHORT, *LIMITS)]
    rows = rows_of(call(*runs, num_jobsets=6))
    assert rows[0]["beyond_wait"] > rows[1]["beyond_wait"]
    for row in rows:
        assert row["judged"] == pytest.approx(row["cost"] + FIXED * row["beyond_wait"])
    assert rows[0]["broken_wait"] > 0
    assert "beyond wait" in repr(call(*runs, num_jobsets=6))


def test_what_was_chosen_is_found_by_a_glob(tmp_path: Path) -> None:
    call(make(tmp_path, 0, LONG), num_jobsets=2, out=tmp_path / "chosen")
    assert find_runs([f"{tmp_path}/cho*"]) == [tmp_path / "chosen"]


def test_other_runs_are_refused(tmp_path: Path) -> None:
    one = make(tmp_path / "a", 0, SHORT)
    with pytest.raises(InputError, match="has other settings than"):
        call(one, make(tmp_path / "b", 1, SHORT, *LIMITS))
    with pytest.raises(InputError, match="was trained by reinforce"):
        call(one, make_run(tmp_path / "deeprm", iterations=1))
    with pytest.raises(InputError, match="takes trained runs, but 'saf' is a rule"):
        call("saf")
    with pytest.raises(InputError, match="holds other files"):
        call(one, out=tmp_path)
