"""All files that state the version of metasched state the same one."""

import re
import tomllib

import yaml

from tests.conftest import REPOSITORY

RELEASE = re.compile(r"^## (\d+\.\d+\.\d+)(?: \((\d{4}-\d{2}-\d{2})\))?$", re.MULTILINE)
IMAGE = re.compile(r"\bmetasched(?:-slurm)?:(\d+\.\d+\.\d+)")


def read(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def packaged_version() -> str:
    version: str = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    return version


def test_the_newest_entry_of_the_changelog_is_the_packaged_version() -> None:
    newest, *older = (version for version, _ in RELEASE.findall(read("CHANGELOG.md")))
    assert newest == packaged_version()
    numbers = [tuple(map(int, version.split("."))) for version in (newest, *older)]
    assert numbers == sorted(set(numbers), reverse=True)


def test_changes_to_come_have_a_heading_above_the_newest_entry() -> None:
    headings = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "Unreleased"


def test_a_citation_names_the_packaged_version_and_its_date() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    _, date = RELEASE.findall(read("CHANGELOG.md"))[0]
    assert (citation["version"], str(citation["date-released"])) == (packaged_version(), date)


def test_images_are_tagged_with_the_packaged_version() -> None:
    files = [path for path in (REPOSITORY / "docker").rglob("*") if path.is_file()]
    tags = {
        path.name: set(IMAGE.findall(path.read_text(encoding="utf-8", errors="replace")))
        for path in files
    }
    tagged = {name: versions for name, versions in tags.items() if versions}
    assert {"Dockerfile", "compose.yaml", "rayjob.yaml", "raycluster.yaml"} <= tagged.keys()
    assert {version for versions in tagged.values() for version in versions} == {packaged_version()}
