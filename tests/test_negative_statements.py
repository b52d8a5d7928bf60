"""Statements that something is not so are listed, because nothing breaks when they become false.

A new one is added to `negative_statements.yaml` with how it was checked; a release reads the list.
"""

import re

import pytest
import yaml

from tests.sentences import REPOSITORY, sentences

LISTED = yaml.safe_load((REPOSITORY / "tests" / "negative_statements.yaml").read_text())
NEGATIVE = re.compile(r"\b(no|not|neither|cannot|only)\b", re.IGNORECASE)
PAGES = [
    *("README.md", "tune_jobs/README.md", "tune_jobs/site/README.md"),
    *(
        path.relative_to(REPOSITORY).as_posix()
        for path in sorted((REPOSITORY / "tune_jobs" / "docs").glob("*.md"))
    ),
]


@pytest.mark.parametrize("page", PAGES)
def test_negative_statements_of_a_page_are_those_that_were_checked(page: str) -> None:
    found = sentences((REPOSITORY / page).read_text(encoding="utf-8"))
    stated = {one for one in found if NEGATIVE.search(re.sub(r"`[^`]*`", "", one))}
    assert stated == {*LISTED.get(page, {})}


def test_each_says_how_it_was_checked() -> None:
    assert {*LISTED} <= {*PAGES}
    for checks in LISTED.values():
        for sentence, check in checks.items():
            if check.startswith("tests/"):
                assert (REPOSITORY / check).exists(), sentence
            else:
                assert re.match(r"reading: .+|advice$", check), sentence
