"""Pages of recorded results hold the numbers of the files beside them."""

import re

import pytest

from tests.conftest import REPOSITORY
from tests.tune_jobs.shown_commands import PAGES
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.tables.frames import number, read_table

FIGURES = REPOSITORY / "tune_jobs" / "figures"
RECORDED = FIGURES / "recorded"
RATIO = ("ratio", "ratio_low", "ratio_high")


@pytest.mark.parametrize("name", ["adaptation", "deeprm", "operation"])
def test_tables_are_those_of_the_recorded_files(name: str) -> None:
    known = "".join(f"{markdown_of(path)}\n\n" for path in sorted(RECORDED.glob("*.csv")))
    shown = tables_of((FIGURES / f"{name}.md").read_text(encoding="utf-8"))
    assert len(shown) >= 4
    for table in shown:
        assert table in known, table.partition("\n")[0]


def tables_of(text: str) -> list[str]:
    """Those that follow a line that ends as lines above tables of results do, with that line."""
    heading = r"^[^\n|]+ (?:jobsets|most steps|have specialists|trained [\d.]+):\n\n"
    return re.findall(rf"{heading}\|(?:[^\n]+\n)+", text, re.MULTILINE)


def test_every_recorded_file_stands_on_a_page_and_the_other_way_round() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    for path in RECORDED.iterdir():
        assert re.search(rf"\b{re.escape(path.stem)}\b", pages), path.name
    for name in re.findall(r"recorded/([\w.-]+\.(?:csv|png))", pages):
        assert (RECORDED / name).is_file(), name


def test_gains_by_objective_are_those_of_the_figure() -> None:
    text = (FIGURES / "deeprm.md").read_text(encoding="utf-8")
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
