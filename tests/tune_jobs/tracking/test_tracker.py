"""What training code sees: it records, goes on after a restart, and never raises."""

import logging
import os
import pickle
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_for
from tune_jobs.tracking import (
    NullTracker,
    Tracker,
    copying,
    local_store,
    local_uri,
    worker,
    writer,
)
from tune_jobs.tracking.places import server_uri
from tune_jobs.tracking.run_file import read_run_file
from tune_jobs.tracking.store import LocalStore, Store

Runs = Callable[[], dict[str, Any]]


def test_a_run_with_children_and_files(run_dir: Path, client: Any, runs: Runs) -> None:
    with Tracker.open(run_dir, run_name="sweep", tags={"objective": "slowdown"}) as tracker:
        (run_dir / "config.yaml").write_text("seed: 1")
        outside = run_dir.parent / "curve.png"
        outside.write_bytes(b"png")
        tracker.params({"training": {"lr": 0.001}})
        tracker.artifact(run_dir / "config.yaml")
        tracker.artifact(outside, folder="figures")
        for load in (0.7, 1.1):
            child = tracker.child(f"load {load}")
            child.metrics({"slowdown": load}, step=3)
            child.finish()
    found = runs()
    parent = found["sweep"]
    assert tracker.run_id == parent.info.run_id
    assert parent.data.params == {"training.lr": "0.001"}
    assert parent.data.tags["objective"] == "slowdown"
    assert "version.python" in parent.data.tags
    for load in (0.7, 1.1):
        child = found[f"load {load}"]
        assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert child.data.metrics == {"slowdown": load}
    assert {run.info.status for run in found.values()} == {"FINISHED"}
    files = client.list_artifacts(parent.info.run_id)
    assert [file.path for file in files] == ["config.yaml", "figures"]
    assert (run_dir.parent / "mlartifacts" / "metasched" / parent.info.run_id).is_dir()


def test_a_restart_goes_on_with_the_same_runs(run_dir: Path, client: Any, runs: Runs) -> None:
    crashed = Tracker.open(run_dir, run_name="r", tags={"try": 1})
    crashed.child("c").metrics({"a": 1}, step=1)
    crashed.metrics({"a": 1}, step=1)
    crashed.params({"iterations": 100, "lr": 1})
    crashed.close()  # no finish: as after a crash
    with Tracker.open(run_dir, run_name="r", tags={"try": 2}) as tracker:
        tracker.child("c").metrics({"a": 2}, step=2)
        tracker.metrics({"a": 2}, step=2)
        tracker.params({"iterations": 200, "lr": 1, "new": "x"})
    assert set(runs()) == {"r", "c"}
    assert tracker.run_id == crashed.run_id
    for run in runs().values():
        history = client.get_metric_history(run.info.run_id, "a")
        assert [point.step for point in history] == [1, 2]
    data = runs()["r"].data
    assert (data.tags["try"], data.tags["resumed.try"]) == ("1", "2")
    assert data.params == {"iterations": "100", "lr": "1", "new": "x"}
    assert data.tags["changed.iterations"] == "200"


def test_a_finished_run_can_be_continued(run_dir: Path, runs: Runs) -> None:
    with Tracker.open(run_dir, run_name="r"):
        pass
    again = Tracker.open(run_dir)
    again.close()
    assert runs()["r"].info.status == "RUNNING"
    with Tracker.open(run_dir):
        pass
    assert runs()["r"].info.status == "FINISHED"


@pytest.mark.parametrize(
    ("error", "status"), [(ValueError("x"), "FAILED"), (KeyboardInterrupt(), "KILLED")]
)
def test_the_status_says_how_it_ended(
    run_dir: Path, runs: Runs, error: BaseException, status: str
) -> None:
    with pytest.raises(type(error)), Tracker.open(run_dir, run_name="r"):
        raise error
    assert runs()["r"].info.status == status


def test_a_server_that_is_away_costs_one_warning_and_the_command_is_said(
    run_dir: Path, nowhere: str, runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="tune_jobs.tracking"):
        tracker = Tracker.open(run_dir, uri=nowhere, run_name="r")
        for step in range(50):
            tracker.metrics({"a": step}, step)
        report = tracker.close()
    assert report.lost == 0
    assert f"not at {nowhere} (Connection refused); send them with: " in report.message
    assert report.message.endswith(f"with: metasched sync {run_dir} --tracking-uri {nowhere}")
    assert len([text for text in caplog.messages if "takes no records" in text]) == 1
    assert runs()["r"].data.metrics == {"a": 49.0}


@pytest.mark.parametrize(("answer", "tries"), [("Read timed out.", 3), ("[Errno 111] refused", 2)])
def test_a_server_too_busy_to_answer_is_asked_again_at_the_end_and_one_that_is_away_is_not(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, answer: str, tries: int
) -> None:
    asked, first = 0, threading.Event()

    class Busy(Store):
        def __init__(self, *given: Any) -> None:
            nonlocal asked
            asked += 1
            first.set()
            raise copying.StoreAway(copying.reason(OSError(answer)))

    monkeypatch.setattr(worker, "FIRST_PAUSE_S", 600.0)  # the second try is that of the end
    monkeypatch.setattr(copying, "Store", Busy)
    tracker = Tracker.open(run_dir, uri="http://nowhere")
    assert first.wait(60)
    monkeypatch.setattr(worker, "FIRST_PAUSE_S", 0.5)
    assert tracker.close(1.2).message
    wait_for(lambda: asked >= tries, "tries")
    assert (asked == 2) == (tries == 2)


@pytest.mark.parametrize(
    "uri", ["nonsense://host", "http://[", "sqlite:////proc/no/such.db", "http://me:pw@127.0.0.1:9"]
)
def test_no_uri_raises_and_no_password_is_written(run_dir: Path, runs: Runs, uri: str) -> None:
    tracker = Tracker.open(run_dir, uri=uri, run_name="r")
    tracker.metrics({"a": 1}, step=0)
    message = tracker.close().message
    assert "sync" in message
    assert "pw" not in message
    assert not [p for p in run_dir.rglob("*") if p.is_file() and "pw" in p.read_text()]
    assert runs()["r"].data.metrics == {"a": 1}


def test_bad_calls_are_counted_and_do_not_raise(run_dir: Path, runs: Runs) -> None:
    tracker = Tracker.open(run_dir, run_name="r")
    tracker.metrics({"a": "text", "b": 2}, step=0)
    tracker.metrics({"a": 1}, step=None)  # type: ignore[arg-type]
    tracker.metrics(None, step=1)  # type: ignore[arg-type]
    tracker.params(7)  # type: ignore[arg-type]
    tracker.artifact(None)  # type: ignore[arg-type]
    tracker.artifact("gone.txt")
    tracker.artifact("/proc/1/mem")
    tracker.finish("done")  # type: ignore[arg-type]
    tracker.metrics({"../b": 3}, step=3)
    assert tracker.close().lost == 8
    assert runs()["r"].data.metrics == {"b": 3}


def test_a_run_directory_that_cannot_be_written_does_not_raise(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    tracker = Tracker.open(tmp_path / "file" / "run")
    tracker.metrics({"a": 1}, step=0)
    tracker.child("c").metrics({"a": 1}, step=0)
    tracker.finish()
    assert tracker.close().lost > 0


def test_recording_leaves_the_store_to_a_thread(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers: dict[str, set[threading.Thread]] = {}

    def noted(name: str) -> Callable[..., Any]:
        plain = getattr(Store, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            callers.setdefault(name, set()).add(threading.current_thread())
            return plain(*args, **kwargs)

        return call

    for name in ("__init__", "create_run", "points"):
        monkeypatch.setattr(Store, name, noted(name))
    with Tracker.open(run_dir) as tracker:
        began = time.thread_time()
        for step in range(20):
            tracker.metrics({f"m{n}": 0.5 for n in range(20)}, step)
        assert time.thread_time() - began < 0.2
    assert callers.keys() == {"__init__", "create_run", "points"}
    assert threading.current_thread() not in set.union(*callers.values())


def test_a_full_disk_delays_records_and_loses_none(
    run_dir: Path, client: Any, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.exceptions import MlflowException

    monkeypatch.setattr(worker, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(worker, "GATHER_S", 0.05)
    tracker = Tracker.open(run_dir, run_name="r")
    wait_for(lambda: tracker.run_id, "the run")
    refusals = []

    def full(*given: Any, **options: Any) -> None:
        refusals.append(given)
        raise MlflowException("(sqlite3.OperationalError) database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "points", full)
        patched.setattr(
            shutil, "copyfile", lambda *paths: (_ for _ in ()).throw(OSError(28, os.strerror(28)))
        )
        for step in range(5):
            tracker.metrics({"a": step}, step)
        (run_dir / "a.txt").write_text("a")
        tracker.artifact(run_dir / "a.txt")
        wait_for(lambda: len(refusals) > 2, "refusals")
    assert tracker.close().lost == 0
    history = client.get_metric_history(runs()["r"].info.run_id, "a")
    assert [point.step for point in history] == list(range(5))
    assert [f.path for f in client.list_artifacts(runs()["r"].info.run_id)] == ["a.txt"]


def test_what_others_keep_locked_at_the_end_is_written_when_they_let_go(
    run_dir: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.exceptions import MlflowException

    monkeypatch.setattr(worker, "FIRST_PAUSE_S", 0.05)
    end, tries = LocalStore.end, []

    def locked_at_first(*given: Any) -> None:
        tries.append(given)
        if len(tries) < 4:
            raise MlflowException("(sqlite3.OperationalError) database is locked\n[SQL: UPDATE")
        end(*given)

    monkeypatch.setattr(LocalStore, "end", locked_at_first)
    with Tracker.open(run_dir, run_name="r"):
        pass
    assert runs()["r"].info.status == "FINISHED"


def test_memory_is_bounded_while_the_disk_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_WAITING", 20)
    (tmp_path / "mlflow.db").mkdir()  # a folder where the database should be
    tracker = Tracker.open(tmp_path / "run")
    for step in range(50):
        tracker.metrics({"a": step}, step)
    report = tracker.close()
    assert (report.lost, len(tracker._session.writer._waiting)) == (51, 20)
    assert "could not be written" in report.message


def test_where_a_copy_goes_is_not_remembered(
    run_dir: Path, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", nowhere)
    first = Tracker.open(run_dir)
    assert first.uri == nowhere
    assert first.close().message.endswith(f"sync {run_dir} --tracking-uri {nowhere}")
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    second = Tracker.open(run_dir)
    assert second.uri is None
    assert second.close().message.endswith(f"sync {run_dir} --tracking-uri URI")
    assert not [p for p in run_dir.rglob("*") if p.is_file() and nowhere in p.read_text()]
    assert Tracker.open(run_dir, uri=local_uri(run_dir.parent)).uri is None


def test_a_relative_database_stays_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert server_uri(tmp_path / "runs", "sqlite:///x.db") == f"sqlite:///{tmp_path}/x.db"
    assert server_uri(tmp_path / "runs", "sqlite:///runs/mlflow.db") is None


def test_a_store_that_is_lost_is_made_anew(run_dir: Path, empty_store: Path, runs: Runs) -> None:
    for step in (1, 2):
        with Tracker.open(run_dir, run_name="r") as tracker:
            tracker.complete([(step, {"a": step}) for step in range(1, step)])
            tracker.metrics({"a": step}, step)
        key = read_run_file(run_dir)
        local_store(run_dir.parent).write_bytes(empty_store.read_bytes()) if step == 1 else None
    assert key == read_run_file(run_dir)
    assert runs()["r"].data.metrics == {"a": 2}


def test_a_half_made_database_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(copying.StoreAway, match="gone"):
            LocalStore(tmp_path)
    assert not local_store(tmp_path).exists()
    (half,) = tmp_path.glob(".mlflow.db.*.new")
    half.write_bytes(half.read_bytes()[:5000])
    found = LocalStore(tmp_path)
    assert found.experiment("metasched") == LocalStore(tmp_path).experiment("metasched")
    assert not half.exists()


def test_tracking_off_does_nothing(tmp_path: Path) -> None:
    with NullTracker() as tracker:
        tracker.child("c").metrics({"a": 1}, step=0)
        tracker.artifact(tmp_path)
        tracker.finish()
    assert (tracker.close().message, tracker.run_id, tracker.uri) == ("", None, None)


def test_a_copy_in_another_process_records_nothing(run_dir: Path) -> None:
    with Tracker.open(run_dir) as tracker:
        assert isinstance(pickle.loads(pickle.dumps(tracker)), NullTracker)
