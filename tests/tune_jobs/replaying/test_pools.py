"""Start times of a site are those of one partition, as one pool of its processors."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tune_jobs.replaying.partitioned_log import SITE, write_partitioned_log
from tune_jobs import cli

Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("partitions")
    write_partitioned_log(folder / "jobs.txt")
    (folder / "site.yaml").write_text(SITE.replace("{name: f, count: 2,", "{name: f, count: 1,"))
    return folder / "jobs.txt"


def starts(capsys: Shown, *words: object) -> Any:
    line = ["replay", *map(str, words), "--starts", "--instants", "40", "--json"]
    assert cli.run(cli.metasched, line) == 0
    return json.loads(capsys.readouterr().out)


def test_a_partition_is_the_pool_of_its_processors(log: Path, capsys: Shown) -> None:
    of_site = starts(capsys, log, "--site", log.parent / "site.yaml", "--partition", "fat")
    of_pool = starts(capsys, log, "--processors", "16", "--partition", "fat")
    assert of_site["starts"] == of_pool["starts"]
    assert of_site["jobs"] == of_pool["jobs"]
    assert "one pool of 16 processors" in of_site["remarks"][-1]
    assert not any("one pool" in one for one in of_pool["remarks"])


def test_of_several_partitions_one_must_be_named(log: Path, capsys: Shown) -> None:
    words = ["replay", str(log), "--site", str(log.parent / "site.yaml"), "--starts"]
    assert cli.run(cli.metasched, words) == 2
    error = capsys.readouterr().err
    assert "name it with --partition: main, long, fat, debug" in error
    assert error.count("\n") == 1
