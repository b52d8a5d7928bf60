"""``metasched demo``: all of it once, small, and the words in which it reports."""

import csv
from pathlib import Path

import pytest

from tune_jobs import cli, demo
from tune_jobs.adapting import demo as demo_adaptation
from tune_jobs.runs.directory import RunDirectory
from tune_jobs.runs.training import RunResult


def row(key: str, slowdown: float, half: float, **more):
    return {
        "key": key,
        "policy": key,
        "learned": key == "demo",
        "load": 0.7,
        "jobsets": 1000,
        "slowdown": slowdown,
        "slowdown_low": slowdown - half,
        "slowdown_high": slowdown + half,
        "unfinished": 0,
        **more,
    }


def found(learned: float, half: float = 0.1, **more) -> list[str]:
    rows = [
        row("sjf", 3.0, 0.1),
        row("tetris", 2.8, 0.1, policy="tetris*(0.002)"),
        row("hold", 2.0, 0.1, policy="hold*(8)"),
        row("demo", learned, half, **more),
    ]
    return demo.findings(rows, RunDirectory(Path("runs/demo-1").absolute()))


def test_two_lines_say_what_was_found_and_where_to_look(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "demo-1").mkdir(parents=True)
    what, figures = found(2.1)
    assert "1,000 unseen jobsets at load 70%" in what
    assert "the learned policy 2.10 [2.00, 2.20]" in what
    assert "sjf 3.00 [2.90, 3.10] and tetris*(0.002) 2.80 [2.70, 2.90]" in what
    assert "it is 25% below the better of the two" in what
    assert "hold*(8)" in what
    assert figures.startswith("Figures: runs/demo-1/figures")


@pytest.mark.parametrize(
    ("learned", "half", "verdict"),
    [
        (2.65, 0.1, "cannot be told from the better"),
        (2.85, 0.1, "cannot be told from the better"),
        (4.2, 0.1, "50% above the better of the two"),
        (2.1, 0.7, "cannot be told from the better"),
    ],
)
def test_the_verdict_claims_no_more_than_the_intervals(
    tmp_path, monkeypatch, learned, half, verdict
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "demo-1").mkdir(parents=True)
    assert verdict in found(learned, half)[0]


def test_unfinished_jobs_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "demo-1").mkdir(parents=True)
    assert "2.10 [2.00, 2.20] with 1,234 jobs unfinished" in found(2.1, unfinished=1234)[0]


@pytest.mark.parametrize("stopped", ["", "demo", "demo-meta"])
def test_what_was_found_is_said_also_if_the_last_part_is_stopped(
    stopped, tmp_path, monkeypatch, capsys
):
    def train(config, progress):
        status = 130 if config.name == stopped else 0
        return RunResult(RunDirectory(tmp_path), 1, exit_status=status)

    rows = [row(key, 2.0, 0.1) for key in ("sjf", "tetris", "hold", "demo")]
    monkeypatch.setattr("tune_jobs.runs.training.run_training", train)
    monkeypatch.setattr(demo, "compare_and_draw", lambda *args: rows)
    monkeypatch.setattr(demo, "adapt_and_draw", lambda *args: ["The policy has adapted."])
    status = cli.run(demo.command, ["--runs", str(tmp_path)])
    captured = capsys.readouterr()
    assert status == (130 if stopped else 0)
    assert ("[4/4] Meta-training for 320 iterations" in captured.err) == (stopped != "demo")
    assert ("Mean slowdown on" in captured.out) == (stopped != "demo")
    assert ("MLflow:" in captured.out) == (stopped != "demo")
    assert ("The policy has adapted." in captured.out) == (not stopped)


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_whole_demo_leaves_runs_with_figures_in_the_store(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(demo, "_QUICK", (*demo._QUICK, "training.iterations=3"))
    monkeypatch.setattr(demo, "QUICK_JOBSETS", 10)
    fewer = (*demo_adaptation._QUICK, "training.iterations=3")
    monkeypatch.setattr(demo_adaptation, "_QUICK", fewer)
    assert cli.run(demo.command, ["--quick", "--runs", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    lines = captured.out.strip().splitlines()
    assert lines[0].startswith("Mean slowdown on 10 unseen jobsets")
    assert any("after 3 steps" in line for line in lines)
    assert lines[-1].startswith("MLflow:")
    assert "[4/4]" in captured.err
    (run,) = tmp_path.glob("demo-quick-*")
    for name in ("deeprm-fig4", "deeprm-fig6"):
        assert (run / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (run / "figures" / f"{name}.csv").stat().st_size > 0
    with (run / "figures" / "comparison.csv").open() as file:
        assert {line["key"] for line in csv.DictReader(file)} == {
            "sjf",
            "tetris",
            "hold",
            "demo-quick",
        }
    (meta_run,) = tmp_path.glob("demo-meta-quick-*")
    for name in ("adaptation", "meta-curves"):
        assert (meta_run / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (meta_run / "figures" / f"{name}.csv").stat().st_size > 0
    assert (tmp_path / "mlflow.db").exists()
    copied = {path.name for path in (tmp_path / "mlartifacts").rglob("figures/*")}
    assert copied >= {"deeprm-fig4.png", "deeprm-fig6.png", "comparison.csv", "adaptation.png"}
