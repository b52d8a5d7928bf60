"""A point stands once in MLflow, however often a run is killed and resumed."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tune_jobs.tracking import Tracker

Runs = Callable[[], dict[str, Any]]


def train(run_dir: Path, steps: Iterable[int], **more: float) -> Any:
    """Records iterations as training does; the process is killed behind the last one."""
    tracker = Tracker.open(run_dir, run_name="r")
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


def test_the_first_of_two_values_stands(run_dir: Path, client: Any, runs: Runs) -> None:
    train(run_dir, [1], extra=1.0)
    train(run_dir, [1, 1], extra=2.0)
    assert runs()["r"].data.metrics["extra"] == 1.0
    assert_once(client, runs()["r"], "extra", [1])


def test_what_a_kill_left_unwritten_comes_from_the_runs_own_table(
    run_dir: Path, client: Any, runs: Runs
) -> None:
    train(run_dir, range(1, 4))  # and the points of two more iterations were lost
    tracker = Tracker.open(run_dir)
    tracker.complete([(step, {"loss": 10.0 * step, "new": 1.0}) for step in range(1, 6)])
    for step in range(5, 8):
        tracker.metrics({"loss": step}, step)
    tracker.close()
    history = client.get_metric_history(runs()["r"].info.run_id, "loss")
    assert [(point.step, point.value) for point in history] == [
        *((1, 1), (2, 2), (3, 3), (4, 40), (5, 50), (6, 6), (7, 7))
    ]
    assert_once(client, runs()["r"], "new", range(1, 6))


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
