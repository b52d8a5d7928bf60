"""The commands that the READMEs show can be understood, and their links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from rllib_configs.loading import preset_names
from tune_jobs import cli
from tune_jobs.experiments.definition import experiment_names
from tune_jobs.figures import FIGURES
from tune_jobs.sweeps.definition import sweep_names

ROOT = Path(__file__).parents[2]
PACKAGES = ("cluster_env", "docker", "meta", "rllib_configs", "tune_jobs")
READMES = [
    ROOT / "README.md",
    *(path for package in PACKAGES for path in sorted((ROOT / package).rglob("README.md"))),
]
NAMES = {  # commands whose argument is one of these names
    "train": ("preset", preset_names),
    "tune": ("sweep", sweep_names),
    "figure": ("name", FIGURES.names),
    "results": ("experiment", experiment_names),
}


def commands(text: str) -> list[list[str]]:
    """Words of the commands in indented blocks, without ``metasched`` and without comments."""
    text = text.replace("\\\n", " ")
    lines = re.findall(r"^    metasched (.+)$", text, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


EXAMPLES = [
    pytest.param(words, id=f"{path.parent.name}-{index}-{words[0]}")
    for path in READMES
    for index, words in enumerate(commands(path.read_text(encoding="utf-8")))
]


def test_there_are_readmes_with_commands():
    assert {path.parent.name for path in READMES} >= {"meta", "tune_jobs", "figures"}
    assert len(EXAMPLES) > 20


@pytest.mark.parametrize("words", EXAMPLES)
def test_a_command_has_the_options_and_names_that_it_shows(words):
    name, *rest = words
    command = cli.metasched.get_command(None, name)
    assert command is not None
    context = command.make_context(name, rest)  # raises UsageError if it cannot be understood
    argument, known = NAMES.get(name, ("", list))
    given = context.params.get(argument)
    assert given is None or given.endswith(".yaml") or given in known()


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.parent.name)
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
    assert len((ROOT / "README.md").read_bytes()) < 9000
