"""What the README shows as the output of a command comes out to the digit."""

import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.tune_jobs.shown_commands import read_line
from tune_jobs import cli

PAGES = ("README.md",)
_BLOCK = re.compile(r"(?:^ {4}\S.*\n)(?:^ {4}.*\n|\n(?= {4}))*", re.MULTILINE)
PLAIN = ("compare", "replay", "trace", "whatif")
"""Commands that need nothing that was trained."""


def samples(text: str) -> list[tuple[str, list[str]]]:
    """The last command of each block that is followed by its output, and the lines of that."""
    found = []
    for block in _BLOCK.findall(text):
        lines = [line[4:] for line in block.splitlines() if line.strip()]
        commands = [line for line in lines if line.startswith("metasched ")]
        shown = lines[lines.index(commands[-1]) + 1 :] if commands else []
        if shown and commands[-1].split()[1] in PLAIN and "runs/" not in commands[-1]:
            found.append((commands[-1], shown))
    return found


SAMPLES = [one for page in PAGES for one in samples((REPOSITORY / page).read_text("utf-8"))]


def test_samples_of_policies_and_of_a_log_are_among_them() -> None:
    assert [line.split()[1] for line, _ in SAMPLES] == ["compare", "replay"]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "shown"), SAMPLES, ids=lambda value: str(value)[:30])
def test_a_sample_comes_out_to_the_digit(
    line: str,
    shown: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(cli.metasched, [*read_line("README.md", line).words]) == 0
    printed = [one.rstrip() for one in capsys.readouterr().out.splitlines()]
    begin = printed.index(shown[0])
    assert printed[begin : begin + len(shown)] == shown
