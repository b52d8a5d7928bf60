"""The links of all pages lead somewhere, and the README for guests is short."""

import re

import pytest

from tests.conftest import REPOSITORY
from tests.tune_jobs.shown_commands import PAGES
from tune_jobs import cli


def test_every_package_has_a_readme():
    assert {path.parent.name for path in PAGES} >= {"cluster_env", "meta", "tune_jobs", "api"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_links_lead_to_files_and_headings(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), target
        if heading:
            assert heading in headings(there.read_text(encoding="utf-8")), target


def headings(text: str) -> set[str]:
    """Names under which headings can be linked to."""
    lines = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_the_readme_for_guests_is_short():
    assert len((REPOSITORY / "README.md").read_bytes()) < 9000


def test_every_fault_has_a_test():
    page = (REPOSITORY / "tune_jobs" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", faults_of(page), re.MULTILINE)[1:]
    assert len(rows) >= 20
    for fault, _, tests in rows:
        paths = re.findall(r"`(tests/[^`]+)`", tests)
        assert paths, fault
        assert all((REPOSITORY / path).exists() for path in paths), fault


def faults_of(page: str) -> str:
    return page.partition("\n## What a run survives\n")[2].partition("\n## ")[0]


def test_all_commands_are_listed():
    page = (REPOSITORY / "tune_jobs" / "README.md").read_text(encoding="utf-8")
    listed = page.partition("\n## Commands\n")[2].partition("\n## ")[0]
    assert {*re.findall(r"^- `(\w+)", listed, re.MULTILINE)} == {*cli.COMMANDS}
