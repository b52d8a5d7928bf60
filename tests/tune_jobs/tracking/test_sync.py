"""``metasched sync`` completes the local record, sends a copy, and says where to."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cluster_env.core.errors import InputError
from tests.waiting import wait_for
from tune_jobs.sync import command
from tune_jobs.tracking import Tracker, local_store, local_uri, tracking_dir

Runs = Callable[[], dict[str, Any]]


def sync(*arguments: str | os.PathLike[str]) -> Result:
    return CliRunner().invoke(command, [os.fspath(argument) for argument in arguments])


@pytest.fixture
def recorded(run_dir: Path) -> Path:
    """A run directory with two points."""
    with Tracker.open(run_dir, run_name="r") as tracker:
        tracker.metrics({"a": 1}, step=1)
        tracker.metrics({"a": 2}, step=2)
    return run_dir


def test_sends_what_is_new_and_says_where_to(
    recorded: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = recorded.parent / "other"
    other.mkdir()
    local_store(other).write_bytes(empty_store.read_bytes())
    first = sync(recorded, "--tracking-uri", local_uri(other))
    assert (first.exit_code, first.output) == (
        0,
        f"Sending {recorded} to {local_uri(other)}\n"
        "Sent 2 points and 0 files or folders of 1 run; nothing is left to send.\n",
    )
    monkeypatch.setenv("MLFLOW_TRACKING_URI", local_uri(other))
    again = sync(recorded).output
    assert f"to {local_uri(other)}\nSent 0 points" in again


def test_without_a_server_it_says_how_to_name_one(recorded: Path) -> None:
    for arguments in ([], ["--tracking-uri", local_uri(recorded.parent)]):
        result = sync(recorded, *arguments)
        assert result.exit_code == 0
        assert "name a server with --tracking-uri or MLFLOW_TRACKING_URI" in result.output


def test_status_1_while_the_server_is_away(recorded: Path, nowhere: str) -> None:
    result = sync(recorded, "--tracking-uri", nowhere)
    assert result.exit_code == 1
    assert f"{nowhere} takes no records (Connection refused)" in result.output


@pytest.mark.parametrize("place", ["empty", "missing"])
def test_a_directory_without_records_is_the_users_mistake(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    result = sync(tmp_path / place)
    assert isinstance(result.exception, InputError)
    assert "tracking/run.json" in str(result.exception)


def test_records_of_before_are_named(tmp_path: Path) -> None:
    tracking_dir(tmp_path).mkdir()
    (tracking_dir(tmp_path) / "spool.jsonl").touch()
    assert "written by an earlier version" in str(sync(tmp_path).exception)


def test_a_run_without_its_store_is_named(recorded: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "run"
    moved.parent.mkdir()
    recorded.rename(moved)
    assert f"{local_store(moved.parent)}, which does not exist" in str(sync(moved).exception)


def test_a_run_in_progress_sends_its_records_itself(run_dir: Path) -> None:
    with Tracker.open(run_dir) as tracker:
        wait_for(lambda: tracker.run_id, "its first record")
        result = sync(run_dir)
    assert isinstance(result.exception, InputError)
    assert "in use" in str(result.exception)
