"""The counts that the log of CI shows, against a package that was counted by hand."""

from pathlib import Path

import pytest

from tests.counts import PROGRAM, table

FIRST = '''"""A page of two
lines."""

# Alone.
import math  # beside code


class Thing:
    """One line."""

    size = 1
    """Of an attribute: that is code."""

    def first(self, a, b, c, d, e, f, /, g, *, h):
        """Nine with itself."""

        def inner():
            import os

            return os

        return inner


def _once(value):
    return math.sqrt(
        # Between.
        value
    )


def _twice(): ...


def _never(): ...


_once(_twice() or _twice())
'''
SECOND = "class Thing: ...\n\n\n@staticmethod\nasync def _late(*all, **more):\n" + 60 * "    1\n"
EXPECTED = {
    "files": (2, 0, 2, 1, 3),
    "lines": (103, 0, 103, 2, 105),
    "code lines": (16 + 63, 0, 79, 2, 81),
    "docstring lines": (4, 0, 4, 0, 4),
    "comment-only lines": (2, 0, 2, 0, 2),
    "functions": (6, 0, 6, 1, 7),
    "functions over 60 lines": (1, 0, 1, 0, 1),
    "functions with more than 8 parameters": (1, 0, 1, 0, 1),
    "imports inside functions": (2, 0, 2, 0, 2),  # once for each function around it
    "private functions with one caller": (2, 0, 2, 0, 2),  # one has none
    "lines of these": (6, 0, 6, 0, 6),
    "median length of functions": (4.5, 0, 4.5, 2, 4),  # 1, 1, 4, 5, 9, 61
    "90th percentile of it": (61, 0, 61, 2, 61),
    "class names defined twice or more": (1, 0, 1, 0, 1),
    "words on pages": (3, 2, 5, 0, 9),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package with two modules and a page, a page of another, a test, and what does not count."""
    texts = {
        "cluster_env/__init__.py": FIRST,
        "cluster_env/worlds/second.py": SECOND,
        "cluster_env/README.md": "# Three words\n",
        "meta/README.md": "two words",
        "tests/test_it.py": "def test_it():\n    assert True\n",
        "docker/README.md": "one",
        "README.md": "and\nthree\n\nmore",
        "CHANGELOG.md": "not counted",
        "runs/one/page.md": "not counted",
        ".hidden/page.md": "not counted",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_counts_are_those_by_hand(checkout: Path) -> None:
    head, *lines = table(checkout).splitlines()
    columns = [*PROGRAM, "program", "tests", "all"]
    assert head.split() == columns
    found = {}
    for line in lines:
        words = line.split()
        values = dict(zip(columns, map(float, words[-len(columns) :]), strict=True))
        assert values["rllib_configs"] == values["tune_jobs"] == 0
        chosen = ("cluster_env", "meta", "program", "tests", "all")
        found[" ".join(words[: -len(columns)])] = tuple(values[name] for name in chosen)
    assert found == EXPECTED


def test_the_columns_of_the_table_stand_below_each_other(checkout: Path) -> None:
    assert len({len(line) for line in table(checkout).splitlines()}) == 1
