"""The ordinary commands work on the accrual world by its registration alone."""

import csv
from pathlib import Path

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
