"""The ordinary commands work on the accrual world by its registration alone."""

import csv
from pathlib import Path

import pytest

from tune_jobs import cli


def test_policies_are_compared_by_utility(tmp_path: Path) -> None:
    line = ["--config", "accrual-smoke", "--policies", "none,aggressive:both,density"]
    rates = ["--at", "0.1,0.2", "--jobsets", "6", "--out", str(tmp_path)]
    assert cli.run(cli.metasched, ["compare", *line, *rates]) == 0
    with (tmp_path / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["rate"]) for row in rows] == [0.1] * 3 + [0.2] * 3
    for none, aggressive, density in (rows[:3], rows[3:]):
        assert float(aggressive["utility"]) > float(density["utility"]) > float(none["utility"])


def test_a_config_that_makes_no_sense_is_one_sentence(tmp_path: Path, capsys) -> None:
    line = ["compare", "--config", "accrual-smoke", "--out", str(tmp_path)]
    assert cli.run(cli.metasched, [*line, "--set", "task.workload.utility=1:0 2:1"]) == 2
    [said] = capsys.readouterr().err.strip().splitlines()
    assert "must not rise" in said
    assert len(said) < 500


@pytest.mark.integration
def test_servers_are_trained_resumed_and_compared(local_ray: None, tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    sizes = ["training.jobsets=3", "task.workload.window=200", "evaluation.jobsets=4"]
    small = [f"--set={one}" for one in (*sizes, "training.iterations=2", "task.workload.rate=0.2")]
    train = ["train", "fuzzy-td", "--no-track", "--runners", "0", *small]
    assert cli.run(cli.metasched, [*train, "--run", str(run)]) == 0
    more = ["train", "--resume", str(run), "--no-track", "--set", "training.iterations=3"]
    assert cli.run(cli.metasched, more) == 0
    with (run / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["iteration"] for row in rows] == ["1", "2", "3"]
    learned = [[float(row[f"values/p_{rule}"]) for rule in ("SSS", "LLS")] for row in rows]
    assert len({tuple(one) for one in learned}) == 3
    compared = ["compare", "--policies", f"none,{run}", "--at", "0.2", "--jobsets", "4"]
    assert cli.run(cli.metasched, [*compared, "--out", str(tmp_path / "table")]) == 0
    with (tmp_path / "table" / "comparison.csv").open() as file:
        none, policy = csv.DictReader(file)
    assert float(policy["utility"]) > float(none["utility"])
