"""A run whose process is gone ends; one that may still live does not."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cluster_env.core.errors import InputError
from tests.waiting import PATIENCE_S, wait_for
from tune_jobs.sync import command
from tune_jobs.tracking import Tracker, local_store
from tune_jobs.tracking.process import is_gone, this_process
from tune_jobs.tracking.run_file import read_run_file
from tune_jobs.tracking.sending import LostRuns, end_lost_runs, settle_lost_runs
from tune_jobs.tracking.store import LocalStore

Runs = Callable[[], dict[str, Any]]

KILLED = """
import os, signal, sys
from tune_jobs.tracking import Tracker, local_store
tracker = Tracker.open(sys.argv[1], run_name="r")
tracker.metrics({"a": 1}, 1)
tracker.child("c").metrics({"a": 2}, 2)
tracker.child("done").finish()
tracker.metrics({"a": 3}, 3)
tracker._session.writer.close(300)  # all is written
tracker.metrics({"a": 4}, 4)  # and this is not
with open(sys.argv[1] + "/metrics.csv", "w") as table:
    table.write("iteration,a,b\\n1,1,\\n3,3,\\n4,4,9\\n5,5")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Path:
    """A folder with a run that was killed in mid-run."""
    folder = tmp_path_factory.mktemp("killed")
    shutil.copy(empty_store, local_store(folder))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder / "run")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=PATIENCE_S,
    )
    assert done.returncode == -9
    return folder


@pytest.fixture
def killed(killed_once: Path, tmp_path: Path) -> Path:
    """The directory of a copy of it."""
    shutil.copytree(killed_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def pretend(run_dir: Path, **changes: Any) -> None:
    """Changes what the records say of the process."""
    file = read_run_file(run_dir)
    assert file is not None
    replace(file, process={**file.process, **changes}).write(run_dir)


def end(run_dir: Path, **options: Any) -> LostRuns:
    file = read_run_file(run_dir)
    assert file is not None
    return end_lost_runs(LocalStore(run_dir.parent), run_dir, file, **options)


def sync(*arguments: Any) -> str:
    result = CliRunner().invoke(command, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def statuses(runs: Runs) -> dict[str, str]:
    return {name: run.info.status for name, run in runs().items()}


def test_sync_ends_a_run_that_was_killed(killed: Path, client: Any, runs: Runs) -> None:
    assert "Its process is gone, so it is KILLED now: r, c.\n" in sync(killed)
    assert statuses(runs) == {"r": "KILLED", "c": "KILLED", "done": "FINISHED"}
    ended = runs()["r"].info
    last = client.get_metric_history(ended.run_id, "a")
    assert ended.end_time == last[-1].timestamp  # when its last point was made, not now
    assert [(point.step, point.value) for point in last] == [(1, 1), (3, 3), (4, 4)]
    assert runs()["r"].data.metrics["b"] == 9  # from its table
    assert "KILLED" not in sync(killed)


def test_ui_ends_the_runs_of_its_folder(killed: Path, runs: Runs) -> None:
    assert settle_lost_runs(killed.parent) == ["r", "c"]
    assert statuses(runs)["r"] == "KILLED"
    assert settle_lost_runs(killed.parent) == []


@pytest.mark.parametrize(
    "other", [{"host": "node-7"}, {"machine": "other"}, {"space": 1}, {"started": None}]
)
def test_a_run_of_another_machine_or_container_is_left_alone(
    killed: Path, runs: Runs, other: dict[str, Any]
) -> None:
    pretend(killed, **other)
    said = sync(killed)
    assert f"its process is on {other.get('host', this_process()['host'])}" in said
    assert "--gone" in said
    assert statuses(runs)["r"] == "RUNNING"
    assert settle_lost_runs(killed.parent) == []
    assert "KILLED now: r, c" in sync(killed, "--gone")
    assert statuses(runs)["r"] == "KILLED"


def test_a_run_of_before_the_machine_was_started_again_is_ended(killed: Path) -> None:
    pretend(killed, boot="another", pid=os.getpid())
    assert end(killed).killed == ("r", "c")


def test_records_without_a_process_say_nothing(killed: Path) -> None:
    pretend(killed, **dict.fromkeys(this_process()))
    assert end(killed).elsewhere == "an unknown host"


def test_a_run_that_trains_is_left_alone(run_dir: Path, runs: Runs) -> None:
    tracker = Tracker.open(run_dir, run_name="r")
    wait_for(lambda: tracker.run_id, "its first record")
    assert settle_lost_runs(run_dir.parent) == []
    with pytest.raises(InputError, match="in use by another process"):
        CliRunner().invoke(command, [str(run_dir), "--gone"], catch_exceptions=False)
    tracker.close()
    assert end(run_dir).killed == ()  # the process lives, whether or not it records
    assert statuses(runs) == {"r": "RUNNING"}


def test_a_killed_run_that_is_resumed_runs_again_and_can_be_lost_again(
    killed: Path, runs: Runs
) -> None:
    sync(killed)
    Tracker.open(killed).close()
    assert statuses(runs)["r"] == "RUNNING"
    pretend(killed, pid=2**30)
    assert "KILLED now: r." in sync(killed)


def test_a_process_number_that_was_given_again_is_another_process() -> None:
    here = this_process()
    assert is_gone(here) is False
    assert is_gone({**here, "started": here["started"] + 1}) is True
    assert is_gone({**here, "pid": 2**30}) is True
    assert is_gone(None) is None
