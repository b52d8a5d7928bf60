"""What CI may try twice is a list: tests that are there, each with a reason; any other counts."""

import subprocess
from pathlib import Path

import pytest

from tests.mutations.test_listed import marks_of

REPOSITORY = Path(__file__).resolve().parents[1]
LIST = REPOSITORY / ".ci" / "tried-twice"
ENTRIES = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.partition("  #")[0])
def test_each_is_a_test_with_a_reason(entry: str) -> None:
    name, _, reason = entry.partition("  # ")
    file, _, test = name.partition("::")
    assert test in marks_of(file)
    assert reason


def test_they_are_few() -> None:
    assert len(set(ENTRIES)) == len(ENTRIES) <= 20


def listed(failed: str) -> tuple[int, str]:
    """Exit status and output of the script that CI asks."""
    command = [str(REPOSITORY / ".ci" / "try-again")]
    done = subprocess.run(command, input=failed, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_only_listed_tests_are_tried_again() -> None:
    one, other = (entry.partition("  #")[0] for entry in ENTRIES[:2])
    lines = [f"FAILED {one}[a case] - assert 1 == 2", f"ERROR {other}"]
    summary = "\n".join(["...", *lines, "1 failed, 1 error, 9 passed in 1 s", ""])
    assert listed(summary) == (0, f"{one}\n{other}\n")
    foreign = "FAILED tests/test_words.py::test_x - assert 0"
    assert listed(f"{summary}{foreign}\n") == (1, "")
    assert listed("9 passed in 1 s\n") == (1, "")
    assert listed(f"{summary}!!! session-timeout: 1140 sec exceeded\n") == (1, "")
