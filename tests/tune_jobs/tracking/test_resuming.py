"""A point stands once in MLflow, however often a run is killed and resumed."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tune_jobs.tracking import Delivery, Spool, Tracker, tracking_dir
from tune_jobs.tracking.store import Store

Runs = Callable[[], dict[str, Any]]


def train(run_dir: Path, steps: Iterable[int], uri: str | None = None, **more: float) -> Any:
    """Records iterations as training does; the process is killed behind the last one."""
    tracker = Tracker.open(run_dir, uri=uri, run_name="r")
    child = tracker.child("c")
    for step in steps:
        tracker.metrics({"loss": step, "time/s": id(tracker) % 1000 + step, **more}, step)
        child.metrics({"loss": -step}, step)
    tracker.close()  # nothing says that the run has ended
    return tracker


def assert_once(client: Any, run: Any, name: str, steps: Iterable[int]) -> None:
    history = client.get_metric_history(run.info.run_id, name)
    assert [point.step for point in history] == list(steps)


def test_repeated_iterations_are_recorded_once(run_dir: Path, client: Any, runs: Runs) -> None:
    train(run_dir, range(1, 8))
    train(run_dir, range(5, 9))  # from the checkpoint of iteration 4
    train(run_dir, range(5, 11))  # killed before the next one
    found = runs()
    for run, name in ((found["r"], "loss"), (found["r"], "time/s"), (found["c"], "loss")):
        assert_once(client, run, name, range(1, 11))


def test_a_metric_that_is_new_in_a_repeated_iteration_arrives(
    run_dir: Path, client: Any, runs: Runs
) -> None:
    train(run_dir, range(1, 8))
    train(run_dir, range(5, 9), extra=1.0)
    assert_once(client, runs()["r"], "extra", range(5, 9))
    assert_once(client, runs()["r"], "loss", range(1, 9))


def test_what_a_crash_cut_short_is_recorded_again(run_dir: Path, client: Any, runs: Runs) -> None:
    train(run_dir, range(1, 4))
    spool = tracking_dir(run_dir) / "spool.jsonl"
    spool.write_bytes(spool.read_bytes()[:-20])  # the last line, of the child's third iteration
    train(run_dir, range(3, 6))
    assert_once(client, runs()["c"], "loss", range(1, 6))
    assert_once(client, runs()["r"], "loss", range(1, 6))


def test_a_trial_that_is_tried_again_in_one_process_records_once(
    run_dir: Path, client: Any, runs: Runs
) -> None:
    tracker = train(run_dir, range(1, 5))
    again = Tracker.open(run_dir)
    for _ in range(2):
        for step in range(3, 7):
            again.metrics({"loss": step}, step)
    again.close()
    assert again.key == tracker.key
    assert_once(client, runs()["r"], "loss", range(1, 7))


def test_a_file_store_keeps_a_point_once_that_is_sent_twice(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (run_dir.parent / "mlruns").as_uri()
    send, calls = Store.metrics, []

    def lose_an_answer(store: Store, *given: Any, **options: Any) -> None:
        send(store, *given, **options)
        calls.append(given)
        if len(calls) == 1:
            raise ConnectionError("the answer was lost, the points were not")

    monkeypatch.setattr(Store, "metrics", lose_an_answer)
    train(run_dir, range(1, 4), uri)
    train(run_dir, range(2, 6), uri)
    delivery = Delivery(run_dir, uri, from_start=True)
    delivery.run_to_end()
    delivery.close()
    client = mlflow.MlflowClient(uri, uri)
    experiment = client.get_experiment_by_name("metasched").experiment_id
    found = {run.info.run_name: run for run in client.search_runs([experiment])}
    for run in found.values():
        assert_once(client, run, "loss", range(1, 6))


def test_the_spool_holds_the_first_of_two_values(run_dir: Path) -> None:
    train(run_dir, [1], extra=1.0)
    train(run_dir, [1], extra=2.0)
    records = Spool(tracking_dir(run_dir)).of_kind("metrics")
    assert [json.dumps(one["metrics"]).count("extra") for one in records] == [1, 0]
    assert records[0]["metrics"]["extra"] == 1.0
