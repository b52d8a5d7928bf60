"""How far start times hold is measured at a described site, too."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tune_jobs.replaying.partitioned_log import SITE, write_partitioned_log
from tune_jobs import cli

pytestmark = pytest.mark.usefixtures("as_in_plans")

Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("partitions")
    write_partitioned_log(folder / "jobs.txt")
    return folder / "jobs.txt"


def starts(capsys: Shown, *words: object) -> Any:
    line = ["replay", *map(str, words), "--starts", "--instants", "10", "--json"]
    assert cli.run(cli.metasched, line) == 0
    return json.loads(capsys.readouterr().out)


def test_a_site_of_one_node_is_the_pool(log: Path, capsys: Shown) -> None:
    site = log.parent / "one.yaml"
    site.write_text("nodes: [{name: f, processors: 16}]\npartitions: [{name: fat}]\n")
    of_site = starts(capsys, log, "--site", site, "--partition", "fat")
    of_pool = starts(capsys, log, "--processors", "16", "--partition", "fat")
    assert of_site["starts"] == of_pool["starts"]


def test_intervals_hold_where_partitions_share_nodes_and_users_have_limits(
    log: Path, capsys: Shown
) -> None:
    site = log.parent / "site.yaml"
    calendar = "calendar: [{start: 1770010000, end: 1770010100, kind: failure, nodes: [d1]}]\n"
    site.write_text(SITE + calendar)
    measured = starts(capsys, log, "--site", site)
    rows = [row for row in measured["starts"] if row["size"] == "all"]
    assert rows[0]["jobs"] > 20
    assert rows[0]["covered_90"] > 0.8
    assert rows[0]["error"] < rows[0]["error_of_estimates"]
    assert "no node fails" in measured["remarks"][-1]
