"""The page about a log: its sections, and that each number is in a CSV file beside it."""

import base64
import re
import shlex
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import metasched
from tests.tune_jobs.replaying.slurm_export import write_export
from tune_jobs import cli
from tune_jobs.commands.logs import Replay, WhatIf
from tune_jobs.reports import site_report
from tune_jobs.reports.page import PAGE
from tune_jobs.reports.site_report import SECTIONS, command_of

STRANGER = "<b>=x&amp;"
OPTIONS = "--processors 16 --policies fcfs:easy,saf:easy --change processors=+4"
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
LONGEST = 3_000_000


class Page(HTMLParser):
    """What a page holds.

    Attributes:
        sections: names, in order.
        headings: second-level ones.
        cells: file of the table, exact number or None, and text of each cell of a body.
        items: texts of lists without links.
        commands: lines of preformatted text.
        addresses: of links and pictures.
        open: elements that were opened and not closed.
    """

    VOID = ("meta", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sections, self.headings, self.open = list[str](), list[str](), list[str]()
        self.cells = list[tuple[str, str | None, str]]()
        self.items, self.commands, self.addresses = list[str](), list[str](), list[str]()
        self._csv, self._value, self._text = "", None, ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        said = dict(attrs)
        self.addresses += [said[name] for name in ("src", "href") if name in said]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "section":
            self.sections.append(said["id"])
        if tag == "table":
            self._csv = said["data-csv"]
        if tag == "data":
            self._value = said["value"]
        else:
            self._text = ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "td":
            self.cells.append((self._csv, self._value, self._text))
            self._value = None
        elif tag == "h2":
            self.headings.append(self._text)
        elif tag == "li" and self._text.strip():
            self.items.append(self._text.strip())
        elif tag == "a":
            self._text = ""
        elif tag == "pre":
            self.commands += self._text.strip().splitlines()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A month of jobs with waits; one user has a name that no page must take for HTML."""
    users = ("ann", "bob", STRANGER)
    jobs = [
        (4800 * k, 1 + 370 * k % 4000, 90 + 3700 * k % 40_000, 60_000, 1 + k % 6, 0, users[k % 3])
        for k in range(300)
    ]
    return write_export(tmp_path_factory.mktemp("site") / "jobs.txt", jobs)


@pytest.fixture(scope="module", autouse=True)
def _few_instants() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_report, "INSTANTS", 10)
        yield


@pytest.fixture(scope="module")
def out(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "out"
    line = ["report", str(log), *OPTIONS.split(), "--out", str(folder)]
    assert cli.run(cli.metasched, line) == 0
    return folder


@pytest.fixture(scope="module")
def page(out: Path) -> Page:
    return Page((out / PAGE).read_text("utf-8"))


def test_it_is_one_file_with_all_sections(out: Path, page: Page) -> None:
    text = (out / PAGE).read_text("utf-8")
    assert len(text) < LONGEST
    assert page.open == []
    assert page.sections == [one.name for one in SECTIONS]
    assert page.headings == [one.title for one in SECTIONS]
    assert "Not measured" not in text
    assert STRANGER not in text
    assert STRANGER in {cell for _, _, cell in page.cells}


def test_it_needs_no_network(out: Path, page: Page) -> None:
    pictures = [one for one in page.addresses if not one.startswith("#")]
    assert len(pictures) >= 6
    for one in pictures:
        kind, _, data = one.partition(",")
        assert kind == "data:image/svg+xml;base64"
        drawn = base64.b64decode(data).decode()
        named = set(re.findall(r"https?://[^\"' <]+", drawn[drawn.index("<svg") :]))
        assert named <= NAMESPACES
        assert "<script" not in drawn
    text = (out / PAGE).read_text("utf-8")
    assert not re.search(r"https?://|@import|url\(|<script|<link", text)


def test_each_number_of_a_table_is_in_its_file(out: Path, page: Page) -> None:
    frames = {csv: pd.read_csv(out / csv, dtype=str) for csv, _, _ in page.cells}
    names = {f"{name}.csv" for section in SECTIONS for name in section.tables}
    assert set(frames) <= names
    for must in ("trace/by-week", "replay/against", "starts/starts", "changes/changes"):
        assert f"{must}.csv" in frames
    assert {name for name in names if name.startswith("calibration")} - set(frames) == {
        "calibration/fidelity-by-partition.csv"  # a table of described sites
    }
    for csv, value, text in page.cells:
        cells = frames[csv].to_numpy().ravel()
        if value is not None:
            assert value in cells, (csv, value, text)
        elif text not in ("", "-"):
            assert text in {str(cell).removeprefix("'") for cell in cells}, (csv, text)


def test_each_sentence_is_in_a_file(out: Path, page: Page) -> None:
    sentences = set(pd.read_csv(out / "sentences.csv")["sentence"])
    notes = [one for one in page.items if one not in page.headings]
    assert len(notes) > 5
    assert set(notes) <= sentences


def test_commands_of_the_page_find_its_numbers_again(out: Path, page: Page, tmp_path: Path) -> None:
    lines = [shlex.split(one) for one in page.commands]
    assert {line[1] for line in lines} == {"trace", "replay", "whatif", "report"}
    played = next(one for one in lines if one[1] == "replay" and "--policies" in one)
    changed = next(one for one in lines if one[1] == "whatif")
    for name, line in (("replay", played), ("whatif", changed)):
        assert cli.run(cli.metasched, [*line[1:], "--out", str(tmp_path / name)]) == 0
    for path in (out / "replay").glob("*.csv"):
        assert path.read_bytes() == (tmp_path / "replay" / path.name).read_bytes(), path.name
    then = pd.read_csv(tmp_path / "whatif/now-and-then.csv").set_index("side")
    row = pd.read_csv(out / "changes/changes.csv").iloc[1]
    assert row["mean_wait"] == then["mean_wait"]["then"]
    assert row["change_of_wait_low"] == then["mean_wait"]["from"]


def test_python_writes_the_same_page_again(
    log: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for pictures, which take long to draw."""
    monkeypatch.setattr("tune_jobs.reports.page._svg", lambda report, picture: "")
    found = metasched.report(
        str(log),
        ["fcfs:easy", "saf:easy"],
        change=["processors=+4"],
        processors="16",
        out=tmp_path,
    )
    assert set(found) == {str(one.relative_to(out))[:-4] for one in out.rglob("*.csv")}
    drawn = re.sub(r'"data:image/svg[^"]+"', '""', (out / PAGE).read_text("utf-8"))
    assert (tmp_path / PAGE).read_text("utf-8") == drawn


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--policies nosuch", "unknown"),
        ("--change processor=3", "did you mean 'processors'"),
        ("--change load=+10% --change nosuch=1", "unknown change"),
        ("--max-wait soon", "soon"),
    ],
)
def test_wrong_input_writes_nothing(
    words: str, sentence: str, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["report", str(log), "--processors", "16", "--out", str(tmp_path / "new")]
    assert cli.run(cli.metasched, [*line, *words.split()]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_log_without_waits_gets_a_page_that_says_so(tmp_path: Path) -> None:
    log = tmp_path / "jobs.csv"
    rows = [f"{9000 * k},{600 + k},{1 + k % 4}" for k in range(60)]
    log.write_text("\n".join(["arrival,duration,processors", *rows]) + "\n")
    line = "--processors 4 --policies fcfs:easy --change processors=-1"
    assert (
        cli.run(cli.metasched, ["report", str(log), *line.split(), "--out", str(log.parent)]) == 0
    )
    page = Page((tmp_path / PAGE).read_text("utf-8"))
    assert page.sections == [one.name for one in SECTIONS]
    reasons = [one for one in page.items if one.startswith("Not measured")]
    assert any("does not record the wait" in one for one in reasons)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (Replay(path="a b", policies=["x", "y"], starts=True), "'a b' --policies x,y --starts"),
        (
            WhatIf(path="a", changes={"k": None}, change=["u=1", "v=2"], task_options={"gpus": 4}),
            "a --set k=null --change u=1 --change v=2 --gpus 4",
        ),
    ],
)
def test_options_become_the_command_line_that_has_them(options: Any, line: str) -> None:
    words = shlex.split(command_of("replay", options))
    assert sorted(words) == sorted(["metasched", "replay", *shlex.split(line)])
