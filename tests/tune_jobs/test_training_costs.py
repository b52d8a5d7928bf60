"""Figures of what training costs (Cunha, figures 5.6 and 5.7), and of job logs (table 5.8)."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.evaluation import get_metric
from cluster_env.workloads.swf import write_swf
from cluster_env.worlds import get_spec
from rllib_configs.config.loading import load_config, write_config
from tests.tune_jobs.drawing import texts
from tune_jobs.figures.cunha import draw_logs
from tune_jobs.figures.learning_curves import draw, draw_lengths, draw_times
from tune_jobs.figures.registry import make_figure
from tune_jobs.recipes import cunha, learning_curves
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.runs.history import History
from tune_jobs.tables.frames import read_table, write_table


def make_run(folder: Path, reward: str, seed: int, length: float) -> None:
    """A run of three iterations of 2,000 decisions, 6 s each, but for 60 s of the first."""
    folder.mkdir(parents=True)
    changes = [f"task.world.reward={reward}", f"seed={seed}"]
    write_config(load_config("hpc-smoke", changes), folder / "config.yaml")
    history = History(folder / "metrics.csv")
    for k in (1, 2, 3):
        costs = {"time/iteration_s": 60.0 if k == 1 else 6.0, "total/decisions": 2000.0 * k}
        costs |= {"train/decisions_per_episode": length - k - seed, "train/return_mean": -length}
        history.append(k, {**costs, "eval/bounded_slowdown": 9.0 - k, "train/return_max": -1.0})


@pytest.fixture
def runs(tmp_path: Path) -> str:
    for reward, length in (("base", 300.0), ("reduced", 100.0)):
        for seed in range(2):
            make_run(tmp_path / "runs" / f"{reward}-{seed}", reward, seed, length)
    return f"{tmp_path}/runs/*"


def test_time_is_that_of_the_median_iteration(runs: str, tmp_path: Path) -> None:
    """6 s for 2,000 decisions are 50 minutes for a million."""
    table = tmp_path / "times.csv"
    write_table(table, learning_curves.collect_costs(FigureRequest(runs=[runs])))
    rows = read_table(table, ("seconds",))
    assert [float(row["seconds"]) for row in rows[:3]] == [60, 66, 72]
    assert texts(draw_times(table)).split("\n").count("50") >= 2


def test_lengths_of_episodes_are_curves_of_several_rewards(runs: str, tmp_path: Path) -> None:
    table = tmp_path / "lengths.csv"
    write_table(table, learning_curves.collect_costs(FigureRequest(runs=[runs])))
    figure = draw_lengths(table)
    curves = sorted(list(line.get_ydata()) for line in figure.axes[0].get_lines())
    assert [98.5, 97.5, 96.5] in curves
    assert [298.5, 297.5, 296.5] in curves
    assert all(reward in texts(figure) for reward in ("base", "reduced"))
    with pytest.raises(InputError, match="needs runs"):
        learning_curves.collect_costs(FigureRequest())


def test_runs_of_every_world_have_learning_curves(runs: str, tmp_path: Path) -> None:
    """Training draws this figure into each run's folder."""
    request = FigureRequest(runs=[runs.replace("*", "base-*")])
    _, table = make_figure("learning-curves", request, tmp_path)
    left, right = draw(table).axes
    (curve,) = (line for line in left.get_lines() if line.get_marker() == "o")
    assert list(curve.get_ydata()) == [8.0, 7.0, 6.0]
    assert left.get_ylabel() == get_metric("bounded_slowdown").label
    rules = [row["key"] for row in read_table(table, ("key",)) if row["series"] == "heuristic"]
    assert set(rules) == set(get_spec("hpc").baselines)
    assert len(right.get_lines()) == 2


def test_numbers_of_iterations_leave_each_other_alone(runs: str, tmp_path: Path) -> None:
    rows = learning_curves.collect(FigureRequest(runs=[runs.replace("*", "base-*")]))
    for row in rows:
        row |= {"iteration": 333.0 * float(row.get("iteration", 0))}
    write_table(tmp_path / "curves.csv", rows)
    figure = draw(tmp_path / "curves.csv")
    figure.canvas.draw()
    for axes in figure.axes:
        ticks = [label.get_window_extent() for label in axes.get_xticklabels()]
        assert len(ticks) > 3
        assert all(left.x1 + 3 < right.x0 for left, right in itertools.pairwise(ticks))


def test_logs_stand_in_a_table(tmp_path: Path) -> None:
    log, table = tmp_path / "office.swf", tmp_path / "logs.csv"
    columns = {"submit": np.arange(100) * 60, "run": np.full(100, 30), "user": np.zeros(100, int)}
    columns |= {"requested_time": np.full(100, 90), "processors": np.full(100, 2)}
    write_swf(log, columns, {"MaxProcs": 4})
    write_table(table, cunha.collect_logs(FigureRequest(traces=[log])))
    (row,) = read_table(table, ("log",))
    assert (row["log"], row["jobs"], row["processors"]) == ("office", "100", "4")
    assert float(row["estimate_over_run"]) == 3
    (drawn,) = draw_logs(table).axes[0].tables
    shown = {cell.get_text().get_text() for cell in drawn.get_celld().values()}
    assert {"office", "3.00", "30 s", "0.0%", "25.2%"} <= shown
