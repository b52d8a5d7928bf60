"""Pages of recorded results hold the numbers of the files beside them."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.tune_jobs.shown_commands import PAGES
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.tables.frames import number, read_frame, read_table, write_table

PAGES_OF_RESULTS = REPOSITORY / "tune_jobs" / "figures"
RECORDED = PAGES_OF_RESULTS / "recorded"
RATIO = ("ratio", "ratio_low", "ratio_high")
SCALES = (1, 100)
"""A share of a file stands in percent on a page."""

Table = dict[str, dict[str, str]]
"""Cells by the name of their row and the title of their column."""

_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?"
_INTERVAL = re.compile(rf"({_NUMBER})%?\*{{0,2}} \[({_NUMBER})%?, ({_NUMBER})%?\]")
_ERROR = re.compile(rf"({_NUMBER})\*{{0,2}} ± ({_NUMBER})")
_NOT_RECORDED = "No CSV is recorded"


@pytest.mark.parametrize(("name", "least"), [("adaptation", 4), ("deeprm", 3), ("operation", 3)])
def test_tables_are_those_of_the_recorded_files(name: str, least: int) -> None:
    recorded: dict[str, list[Table]] = {}
    for path in sorted(RECORDED.glob("*.csv")):
        for heading, table in tables_of(markdown_of(path)):
            recorded.setdefault(heading, []).append(table)
    shown = list(tables_of((PAGES_OF_RESULTS / f"{name}.md").read_text(encoding="utf-8")))
    assert len(shown) >= least
    for heading, table in shown:
        for row, cells in table.items():  # policies of several files stand in one table
            place = f"{heading} {row}"
            assert any(is_part({row: cells}, whole) for whole in recorded.get(heading, [])), place


def tables_of(text: str) -> Iterator[tuple[str, Table]]:
    """Tables under a line that ends as lines above tables of results do, with that line."""
    heading = r"^([^\n|]+ (?:jobsets|last step|trained [\d.]+):)\n\n"
    for found in re.finditer(rf"{heading}((?:\|[^\n]+\n?)+)", text, re.MULTILINE):
        titles, _, *rows = (cells_of(line) for line in found[2].splitlines())
        yield found[1], {row[0]: dict(zip(titles, row, strict=False)) for row in rows}


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@pytest.mark.parametrize("path", sorted(PAGES_OF_RESULTS.glob("*.md")), ids=lambda path: path.name)
def test_tables_have_at_most_six_columns_in_every_row(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    for before, line in pairwise(lines):
        if line.startswith("|"):
            assert len(cells_of(line)) <= 6, line
            assert not before.startswith("|") or len(cells_of(before)) == len(cells_of(line)), line


def is_part(shown: Table, whole: Table) -> bool:
    """Whether a table holds rows and columns of another; names of rows may end at a comma."""
    for name, cells in shown.items():
        rows = [row for full, row in whole.items() if f"{full},".startswith(f"{name},")]
        _, *others = cells.items()
        if len(rows) != 1 or any(rows[0].get(title) != cell for title, cell in others):
            return False
    return True


def test_a_table_with_another_number_row_or_column_is_no_part() -> None:
    whole = {
        "sjf": {"Policy": "sjf", "Wait": "9.7"},
        "`mine`, 5 seeds": {"Policy": "`mine`, 5 seeds", "Wait": "1.0"},
    }
    mine = {"`mine`": {"Policy": "`mine`", "Wait": "1.0"}}
    assert is_part({"sjf": {"Policy": "sjf", "Wait": "9.7"}} | mine, whole)
    assert not is_part({"sjf": {"Policy": "sjf", "Wait": "9.8"}}, whole)
    assert not is_part({"tetris": {"Policy": "tetris", "Wait": "9.7"}}, whole)
    assert not is_part({"sjf": {"Policy": "sjf", "Utilization": "9.7"}}, whole)


def test_an_interval_with_another_end_is_not_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = {"gain": -0.0201, "gain_low": -0.0297, "gain_high": -0.0108, "p": 0.5, "p_error": 0.04}
    write_table(path, [rows])
    assert holds(path, ("0.020", "0.011", "0.030"))  # mirrored
    assert holds(path, ("-2.0", "-3.0", "-1.1"))  # in percent
    assert holds(path, ("0.5", "0.0"))
    assert not holds(path, ("0.020", "0.010", "0.029"))
    assert not holds(path, ("0.020", "-0.011", "0.030"))
    assert not holds(path, ("0.5", "0.1"))


@pytest.mark.parametrize("name", ["accrual", "adaptation", "deeprm", "hpc", "operation"])
def test_intervals_are_those_of_the_files_that_their_section_links(name: str) -> None:
    text = (PAGES_OF_RESULTS / f"{name}.md").read_text(encoding="utf-8")
    checked = 0
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        if _NOT_RECORDED in section:
            continue
        files = {RECORDED / file for file in re.findall(r"recorded/([\w.-]+\.csv)", section)}
        for shown in shown_intervals(section):
            checked += 1
            place = f"{section.splitlines()[0]}: {shown}"
            assert any(holds(path, shown) for path in files), place
    assert checked >= 12


def shown_intervals(text: str) -> list[tuple[str, ...]]:
    """Means with the ends of their interval or their standard error, as they are written."""
    return [found.groups() for found in (*_INTERVAL.finditer(text), *_ERROR.finditer(text))]


def holds(path: Path, shown: tuple[str, ...]) -> bool:
    """Whether a row of a file rounds to the numbers of an interval."""
    frame = read_frame(path)
    ends = ("", "_low", "_high") if len(shown) == 3 else ("", "_error")
    mirrored = (ends[0], *reversed(ends[1:]))  # "0.2 [0.1, 0.3] lower" is a difference of -0.2
    stems = [name for name in frame if all(f"{name}{end}" in frame for end in ends)]
    return any(
        all(
            rounds_to(number(row, f"{stem}{end}") * scale, text)
            for end, text in zip(order, shown, strict=True)
        )
        for row in frame.to_dict("records")
        for stem in stems
        for order, scales in ((ends, SCALES), (mirrored, [-scale for scale in SCALES]))
        for scale in scales
    )


def rounds_to(value: float, shown: str) -> bool:
    digits = len(shown.partition(".")[2])
    return float(f"{value:.{digits}f}") == float(shown.replace(",", ""))


def test_every_recorded_file_stands_on_a_page_and_the_other_way_round() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    for path in RECORDED.iterdir():
        assert re.search(rf"\b{re.escape(path.stem)}\b", pages), path.name
    for name in re.findall(r"recorded/([\w.-]+\.(?:csv|png))", pages):
        assert (RECORDED / name).is_file(), name


def test_gains_by_objective_are_those_of_the_figure() -> None:
    text = (PAGES_OF_RESULTS / "deeprm.md").read_text(encoding="utf-8")
    rows = read_table(RECORDED / "deeprm-fig5.csv", ("metric", "policy", "ratio", "learned"))
    shown = re.findall(r"^\| (\w[\w -]*) \| .* \| (\d\.\d{3} \[[^]]*\])", text, re.MULTILINE)
    assert len(shown) >= 7
    for objective, ratio in shown:
        metric = objective.removeprefix("area-").replace(" ", "_")
        assert ratio in {
            "{:.3f} [{:.3f}, {:.3f}]".format(*(number(row, name) for name in RATIO))
            for row in rows
            if row["metric"] == metric and row["learned"] == "True"
        }, objective


def test_a_table_of_win_rates_does_not_call_them_costs() -> None:
    headings = {
        name: [heading for heading, _ in tables_of(markdown_of(RECORDED / f"{name}.csv"))]
        for name in ("adaptation", "adaptation-win-rate")
    }
    assert len(headings["adaptation"]) == len(headings["adaptation-win-rate"]) == 4
    assert all(": costs relative to" in heading for heading in headings["adaptation"])
    assert all(": share of tasks that" in one for one in headings["adaptation-win-rate"])
