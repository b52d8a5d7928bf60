"""``metasched sync`` sends what waits and says so."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cluster_env.core.errors import InputError
from tune_jobs.sync import command
from tune_jobs.tracking import Tracker, local_uri

Runs = Callable[[], dict[str, Any]]


def sync(*arguments: str | os.PathLike[str]) -> Result:
    return CliRunner().invoke(command, [os.fspath(argument) for argument in arguments])


@pytest.fixture
def waiting(run_dir: Path, nowhere: str) -> Path:
    """A run directory whose five records could not be sent."""
    tracker = Tracker.open(run_dir, uri=nowhere, run_name="r")
    tracker.metrics({"a": 1}, step=1)
    tracker.metrics({"a": 2}, step=2)
    tracker.finish()
    tracker.close()
    return run_dir


def test_sends_what_waits_once(waiting: Path, runs: Runs) -> None:
    uri = local_uri(waiting.parent)
    first = sync(waiting, "--tracking-uri", uri)
    assert (first.exit_code, first.output) == (0, "5 records sent, 0 wait.\n")
    assert runs()["r"].data.metrics == {"a": 2}
    assert runs()["r"].info.status == "FINISHED"
    assert sync(waiting, "--tracking-uri", uri).output == "0 records sent, 0 wait.\n"
    again = sync(waiting, "--tracking-uri", uri, "--from-start")
    assert again.output == "5 records sent, 0 wait.\n"
    assert set(runs()) == {"r"}


def test_status_1_while_the_server_is_away(waiting: Path, nowhere: str) -> None:
    result = sync(waiting)  # the server that the run was started with
    assert result.exit_code == 1
    assert f"{nowhere} takes no records (Connection refused); 5 wait" in result.output


@pytest.mark.parametrize("place", ["empty", "missing"])
def test_a_directory_without_records_is_the_users_mistake(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    result = sync(tmp_path / place)
    assert isinstance(result.exception, InputError)
    assert "spool.jsonl" in str(result.exception)


def test_a_run_in_progress_sends_its_records_itself(run_dir: Path) -> None:
    with Tracker.open(run_dir) as tracker:
        while tracker.run_id is None:
            pass
        result = sync(run_dir)
    assert isinstance(result.exception, InputError)
    assert "in use" in str(result.exception)
