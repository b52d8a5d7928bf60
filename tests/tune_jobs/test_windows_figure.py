"""The same policies in short windows and in operation: what is measured, and what is shown."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tune_jobs import cli
from tune_jobs.recipes import deeprm
from tune_jobs.tables.frames import number, read_table

pytestmark = [pytest.mark.usefixtures("tuned_on_few"), pytest.mark.rendered]

FIGURES = REPOSITORY / "tune_jobs" / "figures"
RECORDED = FIGURES / "recorded" / "deeprm-windows.csv"


def metasched(*args: object) -> None:
    assert cli.run(cli.metasched, list(map(str, args))) == 0


def test_windows_begin_empty_and_operation_has_a_warm_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(deeprm, "WINDOWS", (6, 9))
    monkeypatch.setattr(deeprm, "STEADY", 24)
    monkeypatch.setattr(deeprm, "WARMUP", 4)
    metasched("figure", "deeprm-windows", "--jobsets", 4, "--out", tmp_path)
    rows = read_table(tmp_path / "deeprm-windows.csv", ("place", "slowdown"))
    places = {row["place"]: (row["window"], row["warmup"], row["load"]) for row in rows}
    assert places == {
        "window 6, load 70%": ("6", "0", "0.7"),
        "window 9, load 70%": ("9", "0", "0.7"),
        "operation, load 70%": ("24", "4", "0.7"),
        "operation, load 90%": ("24", "4", "0.9"),
    }
    assert (tmp_path / "deeprm-windows.png").stat().st_size > 10_000
    capsys.readouterr()
    steady = ("--loads", 0.9, "--window", 24, "--warmup", 4, "--rules", "released")
    metasched("compare", "--policies", "easy,tetris", *steady, "--jobsets", 4, "--json")
    busy = {row["key"]: row for row in rows if row["place"] == "operation, load 90%"}
    for compared in json.loads(capsys.readouterr().out):
        for name in ("slowdown", "utilization", "longest_wait", "largest_slowdown"):
            assert number(busy[compared["key"]], name) == compared[name]


def test_the_readme_shows_what_is_recorded() -> None:
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    rows = read_table(RECORDED, ("place", "key", "slowdown"))
    shown = 0
    for row in rows:
        name = row["policy"].split(" (")[0].split("*")[0]
        line = next((one for one in lines if re.match(rf"\| `?{name}`?\W", one)), None)
        if row["place"] != "operation, load 70%" or line is None:
            continue
        shown += 1
        values = {key: number(row, key) for key in row if row[key].replace(".", "").isdigit()}
        assert f" {values['slowdown']:.2f} [" in line.replace("*", "")
        assert f"[{values['slowdown_low']:.2f}, {values['slowdown_high']:.2f}]" in line
        for text in (
            f"{values['utilization']:.1%}",
            f"{values['wait']:.1f}",
            f"{values['longest_wait']:.0f}",
            f"{values['slowdown_large']:.2f}",
        ):
            assert f"| {text} |" in line, (name, text)
    assert shown >= 7
