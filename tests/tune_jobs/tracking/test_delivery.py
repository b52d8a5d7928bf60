"""Records arrive completely, in order and once, whatever happens on the way."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tune_jobs.tracking import Busy, Delivery, Spool, StoreAway, local_store, tracking_dir
from tune_jobs.tracking.delivered import DELIVERED_FILE, REFUSED_FILE
from tune_jobs.tracking.store import Store

Runs = Callable[[], dict[str, Any]]


def spool(run_dir: Path, *records: dict[str, Any]) -> None:
    writer = Spool(tracking_dir(run_dir))
    for record in records:
        writer.append(record)
    writer.close()


def start(key: str = "k", parent: str | None = None) -> dict[str, Any]:
    record = {"kind": "start", "run": key, "time": 1, "experiment": "metasched"}
    return record | {"name": key, "tags": {"tag": "t"}, "parent": parent}


def metrics(step: int, key: str = "k", **values: Any) -> dict[str, Any]:
    return {"kind": "metrics", "run": key, "time": 100 + step, "step": step, "metrics": values}


def end(key: str = "k") -> dict[str, Any]:
    record = {"kind": "end", "run": key, "time": 999, "status": "FINISHED"}
    return record | {"experiment": "metasched"}


def deliver(run_dir: Path, **options: Any) -> Delivery:
    delivery = Delivery(run_dir, None, **options)
    try:
        delivery.run_to_end()
    finally:
        delivery.close()
    return delivery


def curve(client: Any, run: Any, name: str) -> list[tuple[int, float]]:
    return [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, name)]


def test_everything_arrives_in_order(run_dir: Path, client: Any, runs: Runs) -> None:
    points = [metrics(step, a=step / 2, b=-step) for step in range(700)]  # several calls
    params = {f"p{n}": str(n) for n in range(230)}
    spool(run_dir, start(), {"kind": "params", "run": "k", "params": params}, *points, end())
    assert deliver(run_dir).waiting() == 0
    run = runs()["k"]
    assert run.data.params == params
    assert run.data.tags["tag"] == "t"
    assert curve(client, run, "a") == [(step, step / 2) for step in range(700)]
    assert curve(client, run, "b") == [(step, -step) for step in range(700)]
    assert (run.info.status, run.info.start_time, run.info.end_time) == ("FINISHED", 1, 999)


def test_sending_again_changes_nothing(run_dir: Path, client: Any, runs: Runs) -> None:
    (run_dir / "figures").mkdir(parents=True)
    (run_dir / "figures" / "a.txt").write_text("a")
    artifact = {"kind": "artifact", "run": "k", "path": "figures", "folder": None}
    points = [metrics(step, a=step, b="inf", c="nan") for step in range(20)]
    spool(run_dir, start(), start("c", parent="k"), *points, artifact, end("c"), end())
    deliver(run_dir)
    (tracking_dir(run_dir) / DELIVERED_FILE).unlink()  # as if everything was unconfirmed
    deliver(run_dir)
    deliver(run_dir, from_start=True)
    assert set(runs()) == {"k", "c"}
    run = runs()["k"]
    assert curve(client, run, "a") == [(step, step) for step in range(20)]
    assert len(curve(client, run, "c")) == 20
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["figures"]


def test_a_store_that_fails_in_the_middle_gets_the_rest_later(
    run_dir: Path, client: Any, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool(run_dir, start(), *(metrics(step, a=step) for step in range(500)), end())
    send, calls = Store.metrics, []

    def fail_at_third(store: Store, run_id: str, points: Any, **options: Any) -> None:
        send(store, run_id, points, **options)
        calls.append(len(points))
        if len(calls) == 3:
            raise ConnectionError("the answer was lost, the points were not")

    monkeypatch.setattr(Store, "metrics", fail_at_third)
    delivery = Delivery(run_dir, None)
    with pytest.raises(StoreAway, match="the answer was lost"):
        delivery.run_to_end()
    assert delivery.waiting() == 502 - 400
    delivery.run_to_end()
    delivery.close()
    assert curve(client, runs()["k"], "a") == [(step, step) for step in range(500)]


def test_infinity_and_nan_become_gaps(run_dir: Path, client: Any, runs: Runs) -> None:
    spool(run_dir, start(), metrics(0, a="nan", b=1.0), metrics(1, a="inf"), metrics(2, a=2.0))
    deliver(run_dir)
    values = [value for _, value in curve(client, runs()["k"], "a")]
    assert [math.isnan(value) for value in values] == [True, True, False]
    assert curve(client, runs()["k"], "b") == [(0, 1.0)]


def test_a_refused_metric_costs_only_itself(run_dir: Path, client: Any, runs: Runs) -> None:
    bad = {"kind": "metrics", "run": "k", "time": 9, "step": 0, "metrics": {"a": 1, "../b": 2}}
    spool(run_dir, start(), bad, metrics(1, a=3, c=4))
    delivery = deliver(run_dir)
    assert curve(client, runs()["k"], "a") == [(0, 1), (1, 3)]
    assert curve(client, runs()["k"], "c") == [(1, 4)]
    assert (delivery.refused.total(), delivery.waiting()) == (1, 0)
    refused = json.loads((tracking_dir(run_dir) / REFUSED_FILE).read_text())
    assert refused["item"][0] == "../b"


def test_a_changed_parameter_is_kept_beside_the_first(run_dir: Path, runs: Runs) -> None:
    first = {"kind": "params", "run": "k", "params": {"iterations": "100", "lr": "1"}}
    spool(run_dir, start(), first, end())
    deliver(run_dir)
    spool(run_dir, {**first, "params": {"iterations": "200", "lr": "1", "new": "x"}})
    assert deliver(run_dir).refused.total() == 0
    data = runs()["k"].data
    assert data.params == {"iterations": "100", "lr": "1", "new": "x"}
    assert data.tags["changed.iterations"] == "200"


@pytest.mark.parametrize("place", ["gone.txt", "/proc/1/mem"])
def test_an_artifact_that_cannot_be_read_holds_nothing_up(
    run_dir: Path, client: Any, runs: Runs, place: str
) -> None:
    artifact = {"kind": "artifact", "run": "k", "path": place, "folder": None}
    spool(run_dir, start(), artifact, metrics(0, a=1))
    delivery = Delivery(run_dir, None)
    for _ in range(3):
        try:
            delivery.run_to_end()
        except StoreAway:
            continue
    delivery.close()
    assert curve(client, runs()["k"], "a") == [(0, 1)]
    assert delivery.refused.total() == 1


def test_children_are_tied_to_parents_of_other_directories(
    run_dir: Path, client: Any, runs: Runs
) -> None:
    other = run_dir.parent / "other"
    spool(other, start("c", parent="k"), metrics(0, "c", a=1))
    deliver(other)  # the parent is not there yet
    assert "mlflow.parentRunId" not in runs()["c"].data.tags
    spool(run_dir, start())
    deliver(run_dir)
    spool(other, end("c"))
    deliver(other)
    assert runs()["c"].data.tags["mlflow.parentRunId"] == runs()["k"].info.run_id


def test_a_run_deleted_in_the_store_is_sent_anew(run_dir: Path, client: Any, runs: Runs) -> None:
    spool(run_dir, start(), metrics(0, a=1))
    deliver(run_dir)
    first = runs()["k"].info.run_id
    client.delete_run(first)
    spool(run_dir, metrics(1, a=2))
    deliver(run_dir)
    assert runs()["k"].info.run_id != first
    assert curve(client, runs()["k"], "a") == [(0, 1), (1, 2)]


def test_another_store_gets_everything(run_dir: Path, empty_store: Path) -> None:
    spool(run_dir, start(), metrics(0, a=1))
    deliver(run_dir)
    second = run_dir.parent / "second" / "mlflow.db"
    second.parent.mkdir()
    second.write_bytes(empty_store.read_bytes())
    delivery = Delivery(run_dir, f"sqlite:///{second}")
    assert delivery.run_to_end() == 2
    delivery.close()
    assert Delivery(run_dir, None).waiting() == 0


def test_only_one_process_delivers_a_directory(run_dir: Path) -> None:
    spool(run_dir, start())
    first, second = Delivery(run_dir, None), Delivery(run_dir, None)
    first.step()
    with pytest.raises(Busy, match="another process"):
        second.step()
    first.close()
    assert second.run_to_end() == 0  # it has read the progress of the first
    second.close()


def test_a_damaged_progress_file_means_sending_again(run_dir: Path, runs: Runs) -> None:
    spool(run_dir, start(), metrics(0, a=1))
    deliver(run_dir)
    (tracking_dir(run_dir) / DELIVERED_FILE).write_text('{"stores": {"x": 1')
    deliver(run_dir)
    assert set(runs()) == {"k"}


def test_the_database_may_be_lost(run_dir: Path, empty_store: Path, runs: Runs) -> None:
    spool(run_dir, start(), metrics(0, a=1))
    deliver(run_dir)
    local_store(run_dir.parent).write_bytes(empty_store.read_bytes())
    deliver(run_dir)
    assert set(runs()) == {"k"}


def test_a_spool_that_lost_its_end_is_sent_anew_and_no_point_twice(
    run_dir: Path, client: Any, runs: Runs
) -> None:
    spool(run_dir, start(), *(metrics(step, a=step) for step in range(6)))
    deliver(run_dir)
    path = tracking_dir(run_dir) / "spool.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))  # a power failure took three steps
    late = [{**metrics(step, a=step), "time": 900 + step} for step in range(3, 6)]
    spool(run_dir, {"kind": "tags", "run": "k", "tags": {"resumed": "yes"}}, late[0])
    assert path.stat().st_size < sum(map(len, lines))
    deliver(run_dir)
    assert runs()["k"].data.tags["resumed"] == "yes"
    spool(run_dir, *late[1:], metrics(6, a=6), metrics(7, a=7))
    assert path.stat().st_size > sum(map(len, lines))
    assert deliver(run_dir).waiting() == 0
    assert curve(client, runs()["k"], "a") == [(step, step) for step in range(8)]


def test_a_spool_that_lost_its_end_and_grew_past_it_is_noticed(
    run_dir: Path, client: Any, runs: Runs
) -> None:
    spool(run_dir, start(), *(metrics(step, a=step) for step in range(6)))
    deliver(run_dir)
    path = tracking_dir(run_dir) / "spool.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    resumed = {"kind": "tags", "run": "k", "tags": {"resumed": "yes"}}
    late = ({**metrics(step, a=step), "time": 900 + step} for step in range(3, 12))
    spool(run_dir, resumed, *late)
    deliver(run_dir)
    assert runs()["k"].data.tags["resumed"] == "yes"
    assert curve(client, runs()["k"], "a") == [(step, step) for step in range(12)]


class Listening:
    """Stands for a store; notes the order of calls, and fails where it is told to."""

    keeps_doubles = False

    def __init__(self, failures: dict[str, int] | None = None) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.failures = failures or {}

    def has_run(self, run_id: str) -> bool:
        return True

    def find_run(self, experiment: str, key: str) -> str:
        return key

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **options: Any) -> None:
            self.calls.append((name, given[1:]))
            if self.failures.get(name, 0) > 0:
                self.failures[name] -= 1
                raise ConnectionError("not now")

        return call

    def named(self, name: str) -> list[Any]:
        return [given for called, given in self.calls if called == name]


def listening(run_dir: Path, **failures: int) -> tuple[Delivery, Listening]:
    """A delivery to such a store."""
    delivery, store = Delivery(run_dir, None), Listening(failures)
    delivery._store = store  # type: ignore[assignment]
    return delivery, store


@pytest.mark.parametrize("last", ["end", "resume", "artifact", "note"])
def test_points_arrive_before_what_was_recorded_after_them(run_dir: Path, last: str) -> None:
    run_dir.mkdir()
    (run_dir / "a.txt").write_text("a")
    records = {
        "end": end(),
        "resume": {"kind": "resume", "run": "k", "time": 5},
        "artifact": {"kind": "artifact", "run": "k", "path": "a.txt", "folder": None},
        "note": {"kind": "note", "run": "k", "title": "t", "text": "x"},
    }
    params = {"kind": "params", "run": "k", "params": {"p": "1"}}
    spool(run_dir, start(), params, metrics(0, a=1), records[last], metrics(1, a=2))
    delivery, store = listening(run_dir)
    delivery.run_to_end()
    delivery.close()
    call = {"resume": "reopen"}.get(last, last)
    assert [name for name, _ in store.calls] == ["params", "metrics", call, "metrics"]


def test_a_file_is_tried_three_times_and_then_passed_over(run_dir: Path) -> None:
    run_dir.mkdir()
    (run_dir / "a.txt").write_text("a")
    artifact = {"kind": "artifact", "run": "k", "path": "a.txt", "folder": None}
    spool(run_dir, start(), artifact, metrics(0, a=1))
    delivery, store = listening(run_dir, artifact=100)
    for _ in range(2):
        with pytest.raises(StoreAway, match="not now"):
            delivery.run_to_end()
    delivery.run_to_end()
    delivery.close()
    assert len(store.named("artifact")) == 3
    assert len(store.named("metrics")) == 1
    assert (delivery.refused.total(), delivery.waiting()) == (1, 0)


def test_a_file_that_arrives_at_the_third_try_is_there(run_dir: Path) -> None:
    run_dir.mkdir()
    (run_dir / "a.txt").write_text("a")
    spool(run_dir, start(), {"kind": "artifact", "run": "k", "path": "a.txt", "folder": None})
    delivery, _ = listening(run_dir, artifact=2)
    for _ in range(2):
        with pytest.raises(StoreAway):
            delivery.run_to_end()
    delivery.run_to_end()
    delivery.close()
    assert (delivery.refused.total(), delivery.waiting()) == (0, 0)
