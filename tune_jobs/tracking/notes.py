"""The description of a run in MLflow, which holds its result in words, a table and the command."""

import re
from collections.abc import Iterable, Mapping

NOTE_TAG = "mlflow.note.content"
MAX_NOTE = 7_500  # characters; MLflow's limit of a tag is 8,000
MAX_OF_MODEL = 5_000  # of the description of a registered model, in a database with limits
_CUT = "\n\n..."


def with_section(note: str, title: str, text: str, most: int = MAX_NOTE) -> str:
    """A description with a section added, or in the place of the one of that title.

    What somebody has written before, behind or between our sections stays. The text is Markdown,
    and cut where the description would become too long.
    """
    name = re.sub(r"\W+", "-", title.lower())
    begin, end = f"<!-- metasched {name} -->", f"<!-- end of {name} -->"
    head, found, rest = note.partition(begin)
    tail = rest.partition(end)[2] if found else ""
    room = most - len(head) - len(tail) - len(begin) - len(end) - len(title) - 20
    if len(text) > room:
        text = text[: max(0, room - len(_CUT))].rpartition("\n")[0] + _CUT
    section = f"{begin}\n### {title}\n\n{text}\n{end}"
    if found:
        return f"{head}{section}{tail}"
    return f"{note.rstrip()}\n\n{section}".lstrip()


def with_sections(note: str, sections: Mapping[str, str]) -> str:
    """A description with several sections, texts by title; see `with_section`."""
    for title, text in sections.items():
        note = with_section(note, title, text)
    return note


def with_verdicts(description: str, sections: Mapping[str, str]) -> str:
    """The description of a registered model with what sections say first; its run has the rest."""
    for title, text in sections.items():
        description = with_section(description, title, text.partition("\n\n")[0], MAX_OF_MODEL)
    return description


def code(commands: Iterable[str]) -> str:
    """Commands, each once and ready to paste."""
    return "\n".join(["```", *dict.fromkeys(commands), "```"])


def sections_of(note: str) -> dict[str, str]:
    """Our sections of a description, text by title."""
    pattern = r"<!-- metasched ([\w-]+) -->\n### ([^\n]*)\n\n(.*?)\n<!-- end of \1 -->"
    return {title: text for _, title, text in re.findall(pattern, note, re.DOTALL)}
