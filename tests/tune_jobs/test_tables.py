"""Tables: recorded files come out as they went in, and numbers are written for people."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cluster_env.core.durations import duration, seconds_of
from cluster_env.core.errors import InputError
from cluster_env.evaluation import Estimate
from tests.conftest import REPOSITORY
from tune_jobs.tables.columns import (
    COUNT,
    RATIO,
    SECONDS,
    SHARE,
    TIME,
    shown,
    with_interval,
    within_range,
)
from tune_jobs.tables.frames import frame_of, read_frame, read_table, write_table
from tune_jobs.tables.printing import Sheet, aligned, folded, format_sheet, markdown, width_of

RECORDED = sorted((REPOSITORY / "tune_jobs" / "figures" / "recorded").glob("*.csv"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_table_is_written_as_it_was_read(path: Path, tmp_path: Path) -> None:
    for rows in (read_frame(path), read_table(path, ())):
        write_table(tmp_path / "again.csv", rows)
        assert (tmp_path / "again.csv").read_text() == path.read_text()  # some have Windows' ends


def test_cells_are_written_as_they_were_measured(tmp_path: Path) -> None:
    rows = [
        {"a": 1, "b": 0.1, "c": True, "d": "x, y", "e": np.float64(1e-7)},
        {"a": np.int64(2), "b": float("nan"), "c": np.bool_(False), "d": 'say "no"', "f": 3},
    ]
    write_table(tmp_path / "new" / "table.csv", rows)
    assert (tmp_path / "new" / "table.csv").read_text().splitlines() == [
        "a,b,c,d,e,f",
        '1,0.1,True,"x, y",1e-07,',
        '2,,False,"say ""no""",,3',
    ]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["table.csv"]
    write_table(tmp_path / "millions.csv", pd.DataFrame({"line": [1, 2], "user": ["ann", ""]}))
    assert (tmp_path / "millions.csv").read_text() == "line,user\n1,ann\n2,\n"
    assert frame_of(rows)["a"].tolist() == [1, 2]


def test_what_is_read_is_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c,d\nTrue,,1e-3,NA\n007,nan,None,\n")
    assert read_table(tmp_path / "t.csv", ("a", "d")) == [
        {"a": "True", "b": "", "c": "1e-3", "d": "NA"},
        {"a": "007", "b": "nan", "c": "None", "d": ""},
    ]
    (tmp_path / "n.csv").write_text("a,b\n7,\n1e-3,inf\n")
    numbers = read_frame(tmp_path / "n.csv", numbers=("a", "b"))
    assert numbers["a"].tolist() == [7, 0.001]
    assert np.isnan(numbers["b"][0])
    with pytest.raises(InputError, match="column 'a' should hold numbers"):
        read_frame(tmp_path / "t.csv", numbers=("a",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read"),
        ("", "holds no rows"),
        ("a,b\n", "holds no rows"),
        ("b\n1\n", "has no column 'a'"),
        (b"a\n\xff\xfe\n", "cannot read"),
    ],
)
def test_a_file_that_is_no_table_is_refused(
    text: str | bytes | None, message: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message) as caught:
        read_frame(tmp_path / "t.csv", ("a",))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (90, SECONDS, "90 s"),
        (0, SECONDS, "0 s"),
        (150, SECONDS, "2.5 min"),
        (9000, SECONDS, "2.5 h"),
        (40 * 86_400, SECONDS, "40 d"),
        (400 * 86_400, SECONDS, "400 d"),
        (12.34, TIME, "12.3"),
        (0.7, SHARE, "70.0%"),
        (0.051, SHARE, "5.1%"),
        (12_345, COUNT, "12,345"),
        (1.2, RATIO, "1.20"),
        (float("nan"), RATIO, "-"),
        ("ada", COUNT, "ada"),
    ],
)
def test_numbers_are_written_for_people(value: object, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_times_are_written_as_their_world_does() -> None:
    assert shown(9000, TIME, duration) == "2.5 h"
    assert with_interval((5.1, 4.8, 5.4)) == "5.10 [4.80, 5.40]"
    assert with_interval((5.1, float("nan"), float("nan")), 3, "+") == "+5.100"
    assert with_interval((float("nan"), 1, 2)) == "-"


@pytest.mark.parametrize(
    ("metric", "ends", "cut"),
    [
        ("slowdown", (-366.0, 421.0), (1.0, 421.0)),
        ("utilization", (-0.1, 1.2), (0.0, 1.0)),
        ("wait", (-5.0, 5.0), (0.0, 5.0)),
        ("utility", (-5.0, 5.0), (-5.0, 5.0)),
    ],
)
def test_no_interval_leaves_the_range_of_its_metric(
    metric: str, ends: tuple[float, float], cut: tuple[float, float]
) -> None:
    found = within_range(metric, Estimate(2.0, *ends, "jobsets"))
    assert (found.low, found.high) == cut


LINES = [["", "policy", "mean"], [">", "a name of several words that is long", "1.00"]]


def test_lines_are_aligned_and_names_broken_where_there_is_no_room() -> None:
    assert aligned(LINES, names=2) == [
        "   policy                                mean",
        ">  a name of several words that is long  1.00",
    ]
    assert width_of(LINES) == 45
    narrow = aligned(LINES, names=2, width=30)
    assert max(map(len, narrow)) <= 30
    assert " ".join(" ".join(narrow).split()) == (
        "policy mean > a name of several 1.00 words that is long"
    )
    assert aligned([["[bold]x[/bold]", "1"]], names=1) == ["[bold]x[/bold]  1"]
    assert aligned([["a\tb", "1"], ["計算", "12"]], names=1, width=9) == ["a b    1", "計算  12"]
    assert markdown([["a|b", "n"], ["c", "1"]]).splitlines() == [
        r"| a\|b | n |",
        "| :-- | --: |",
        "| c | 1 |",
    ]


def test_sentences_are_folded_between_words() -> None:
    assert folded(["one two three four", "x-y"], 14) == ["one two three", "  four", "x-y"]
    assert folded(["aaaa bbbb-cc"], 10) == ["aaaa", "  bbbb-cc"]


def test_a_sheet_has_a_head_and_leaves_empty_what_is_missing() -> None:
    sheet = Sheet("users", "Users", ["user", "mean_wait"], [{"user": "ada"}, {"user": "bob"}])
    assert sheet.cells() == [["user", "wait"], ["ada", ""], ["bob", ""]]
    assert format_sheet(replace(sheet, most=1)).splitlines()[1:] == [
        "user  wait",
        "ada",
        "  (and 1 more in users.csv with --out)",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90s", 90), ("30m", 1800), ("1.5h", 5400), ("5d", 432_000)]
)
def test_times_are_read_with_their_units(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "d", "-5d", "5 d", "5days", "1e3s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="a time is 0 or a number with s, m, h or d"):
        seconds_of(text)


@pytest.mark.parametrize("cell", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1"])
def test_a_spreadsheet_takes_no_cell_for_a_formula(cell: str, tmp_path: Path) -> None:
    write_table(tmp_path / "users.csv", [{"user": cell, "jobs": -3}, {"user": "ada", "jobs": 1}])
    first, second = read_table(tmp_path / "users.csv", ("user", "jobs"))
    assert first["user"].startswith("'")
    assert (first["jobs"], second["user"]) == ("-3", "ada")
