"""What training code sees: it records, goes on after a restart, and never raises."""

import inspect
import logging
import pickle
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tune_jobs.tracking import NullTracker, Spool, Tracker, local_uri, tracking_dir, writer
from tune_jobs.tracking.delivery import Delivery
from tune_jobs.tracking.places import tracking_uri
from tune_jobs.tracking.store import Store, StoreAway, reason

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
    crashed.close()  # no finish: as after a crash
    with Tracker.open(run_dir, run_name="r", tags={"try": 2}) as tracker:
        tracker.child("c").metrics({"a": 2}, step=2)
        tracker.metrics({"a": 2}, step=2)
    assert set(runs()) == {"r", "c"}
    assert tracker.run_id == crashed.run_id
    for run in runs().values():
        history = client.get_metric_history(run.info.run_id, "a")
        assert [point.step for point in history] == [1, 2]
    tags = runs()["r"].data.tags
    assert (tags["try"], tags["resumed.try"]) == ("1", "2")


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


def test_a_parent_can_be_named_by_its_directory(run_dir: Path, runs: Runs) -> None:
    with Tracker.open(run_dir, run_name="meta"):
        pass
    with Tracker.open(run_dir.parent / "adapt", run_name="adapt", parent=run_dir):
        pass
    parent = runs()["meta"].info.run_id
    assert runs()["adapt"].data.tags["mlflow.parentRunId"] == parent


def test_what_does_not_arrive_is_said_once_with_the_command(
    tmp_path: Path, nowhere: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="tune_jobs.tracking"):
        tracker = Tracker.open(tmp_path / "run", uri=nowhere)
        for step in range(50):
            tracker.metrics({"a": step}, step)
        report = tracker.close()
    assert report.waiting == 52  # with the opening and the start
    assert f"metasched sync {tmp_path / 'run'}" in report.message
    assert report.lost == report.refused == 0
    warnings = [text for text in caplog.messages if "takes no records" in text]
    assert len(warnings) == 1


@pytest.mark.parametrize(("answer", "tries"), [("Read timed out.", 3), ("[Errno 111] refused", 2)])
def test_a_store_too_busy_to_answer_is_asked_again_at_the_end_and_one_that_is_away_is_not(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, answer: str, tries: int
) -> None:
    asked = 0
    send, first = Delivery.run_to_end, threading.Event()

    def busy(delivery: Delivery) -> int:
        nonlocal asked
        asked += 1
        first.set()
        if asked < 3:
            raise StoreAway(reason(OSError(answer)))
        return send(delivery)

    monkeypatch.setattr(writer, "FIRST_PAUSE_S", 600.0)  # the second try is that of the end
    monkeypatch.setattr(Delivery, "run_to_end", busy)
    tracker = Tracker.open(run_dir, run_name="r")
    assert first.wait(60)
    monkeypatch.setattr(writer, "FIRST_PAUSE_S", 0.01)
    report = tracker.close(60)
    assert asked == tries
    assert (report.waiting == 0) == (tries == 3)


@pytest.mark.parametrize(
    "uri", ["nonsense://host", "http://[", "sqlite:////proc/no/such.db", "http://me:pw@127.0.0.1:9"]
)
def test_no_uri_raises_and_no_password_is_written(tmp_path: Path, uri: str) -> None:
    tracker = Tracker.open(tmp_path / "run", uri=uri)
    tracker.metrics({"a": 1}, step=0)
    assert tracker.close().waiting == 3
    assert "pw" not in Spool(tracking_dir(tmp_path / "run")).path.read_text()


def test_bad_calls_are_counted_and_do_not_raise(run_dir: Path, runs: Runs) -> None:
    tracker = Tracker.open(run_dir, run_name="r")
    tracker.metrics({"a": "text", "b": 2}, step=0)
    tracker.metrics({"a": 1}, step=None)  # type: ignore[arg-type]
    tracker.metrics(None, step=1)  # type: ignore[arg-type]
    tracker.params(7)  # type: ignore[arg-type]
    tracker.artifact(None)  # type: ignore[arg-type]
    tracker.finish("done")  # type: ignore[arg-type]
    assert tracker.close().lost == 6
    assert runs()["r"].data.metrics == {"b": 2}


def test_a_run_directory_that_cannot_be_written_does_not_raise(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    tracker = Tracker.open(tmp_path / "file" / "run")
    tracker.metrics({"a": 1}, step=0)
    tracker.child("c").metrics({"a": 1}, step=0)
    tracker.finish()
    assert tracker.close().lost > 0


def test_recording_writes_one_line_and_leaves_the_store_to_a_thread(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers: dict[str, set[threading.Thread]] = defaultdict(set)

    def noted(name: str) -> Callable[..., Any]:
        plain = getattr(Store, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            callers[name].add(threading.current_thread())
            return plain(*args, **kwargs)

        return call

    for name in ("__init__", "create_run", "metrics"):
        monkeypatch.setattr(Store, name, noted(name))
    with Tracker.open(run_dir) as tracker:
        spool = tracking_dir(run_dir) / "spool.jsonl"
        for step in range(20):
            before = spool.read_bytes().count(b"\n")
            tracker.metrics({f"m{n}": 0.5 for n in range(20)}, step)
            assert spool.read_bytes().count(b"\n") == before + 1
    assert callers.keys() == {"__init__", "create_run", "metrics"}
    assert threading.current_thread() not in set.union(*callers.values())


def test_the_store_of_a_directory_is_remembered(
    run_dir: Path, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", nowhere)
    first = Tracker.open(run_dir)
    assert first.uri == nowhere
    first.close()
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    second = Tracker.open(run_dir)
    assert second.uri == nowhere
    second.close()
    third = Tracker.open(run_dir, uri=local_uri(run_dir.parent))
    assert third.close().waiting == 0  # the other store gets everything


def test_a_relative_database_stays_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tracking_uri("runs/r", "sqlite:///x.db") == f"sqlite:///{tmp_path}/x.db"
    assert tracking_uri("runs/r", None) == f"sqlite:///{tmp_path}/runs/mlflow.db"


def test_tracking_off_looks_the_same() -> None:
    def methods(kind: type) -> dict[str, inspect.Signature]:
        names = [name for name in vars(kind) if not name.startswith("_") and name != "open"]
        return {n: inspect.signature(f) for n in names if callable(f := getattr(kind, n))}

    assert methods(NullTracker) == methods(Tracker)
    with NullTracker() as tracker:
        tracker.child("c").metrics({"a": 1}, step=0)
        tracker.finish()
    assert tracker.close().message == ""


def test_a_copy_in_another_process_records_nothing(run_dir: Path) -> None:
    with Tracker.open(run_dir) as tracker:
        assert isinstance(pickle.loads(pickle.dumps(tracker)), NullTracker)
