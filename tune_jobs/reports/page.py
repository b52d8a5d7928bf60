"""A page of HTML from reports: their tables, pictures and sentences, in sections."""

import base64
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib
from jinja2 import Environment, StrictUndefined

from tune_jobs.tables.printing import Sheet
from tune_jobs.tables.report import Report

PAGE = "report.html"
_TEMPLATE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class Section:
    """A question, and what answers it.

    Attributes:
        name: its anchor.
        title: the question.
        about: how to read the answer.
        parts: reports whose commands stand here, and their sentences, if in no section before.
        tables: by report and name, ``trace/by-week``; those that are not there are left out.
        pictures: captions, likewise.
    """

    name: str
    title: str
    about: str
    parts: Sequence[str]
    tables: Sequence[str]
    pictures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """What people read; ``value`` is the number as the CSV file has it, None for a text."""

    text: str
    value: Any = None


def page(
    title: str,
    short: Sequence[str],
    sections: Sequence[Section],
    reports: Mapping[str, Report],
    commands: Mapping[str, Sequence[str]],
    command: str,
) -> str:
    """The page as one text, which needs no other file.

    Args:
        title: what is reported on.
        short: sentences on top.
        sections: in order.
        reports: by name, which can draw their pictures.
        commands: lines that make each of them.
        command: that makes the page.
    """
    # Everything is escaped: names in a log may be a stranger's.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    first = {part: one.name for one in reversed(sections) for part in one.parts}
    laid_out = [
        {
            "name": one.name,
            "title": one.title,
            "about": one.about,
            "tables": list(_tables(one, reports)),
            "pictures": list(_pictures(one, reports)),
            "remarks": [
                remark
                for part in one.parts
                if first[part] == one.name
                for remark in reports[part].remarks
            ],
            "commands": [line for part in one.parts for line in commands[part]],
        }
        for one in sections
    ]
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        title=title, short=short, sections=laid_out, command=command, version=version("metasched")
    )


def _tables(section: Section, reports: Mapping[str, Report]) -> Iterator[Mapping[str, Any]]:
    for name in section.tables:
        part, _, table = name.partition("/")
        for sheet in reports[part].sheets:
            if sheet.name == table and sheet.rows:
                head, *rows = _cells(sheet)
                more = len(sheet.rows) - len(rows)
                yield {
                    "csv": f"{name}.csv",
                    "sheet": sheet,
                    "head": head,
                    "rows": rows,
                    "more": more,
                }


def _cells(sheet: Sheet) -> Iterator[list[Cell]]:
    head, *lines = sheet.cells()
    yield [Cell(text) for text in head]
    most = sheet.most or len(lines)
    for line, row in zip(lines[:most], sheet.rows[:most], strict=True):
        values = [row.get(name, "") for name in sheet.shown]
        yield [Cell(text, _number(value)) for text, value in zip(line, values, strict=True)]


def _number(value: Any) -> Any:
    is_text = isinstance(value, str)
    return None if is_text or math.isnan(value) else value


def _pictures(section: Section, reports: Mapping[str, Report]) -> Iterator[Mapping[str, str]]:
    for name, caption in section.pictures.items():
        part, _, picture = name.partition("/")
        report = reports[part]
        if picture in report.pictures:
            tables = [f"{part}/{table}.csv" for table in report.pictures[picture].tables]
            yield {"caption": caption, "csv": ", ".join(tables), "data": _svg(report, picture)}


def _svg(report: Report, picture: str) -> str:
    """A picture as an address that holds all of it; twice the same of the same numbers."""
    image = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": picture}):
        report.figure(picture).savefig(image, format="svg", metadata=nothing)
    return f"data:image/svg+xml;base64,{base64.b64encode(image.getvalue().encode()).decode()}"
