"""A server gets everything that the local store has, completely and once, whatever happens."""

import contextlib
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tune_jobs.tracking import Tracker, local_store, store
from tune_jobs.tracking.copying import Copy, _digest
from tune_jobs.tracking.notes import NOTE_TAG
from tune_jobs.tracking.run_file import read_run_file
from tune_jobs.tracking.store import LocalStore, Store, StoreAway

Runs = Callable[[], dict[str, Any]]
NUM_STEPS = 400
"""Of three metrics, which take several calls, as 130 parameters do."""


class Server:
    """A database that stands for a server."""

    def __init__(self, folder: Path, empty_store: Path) -> None:
        import mlflow

        folder.mkdir()
        local_store(folder).write_bytes(empty_store.read_bytes())
        self.uri = f"sqlite:///{local_store(folder)}"
        self.client = mlflow.MlflowClient(self.uri, self.uri)

    def runs(self) -> dict[str, Any]:
        experiment = self.client.get_experiment_by_name("metasched")
        found = self.client.search_runs([experiment.experiment_id]) if experiment else []
        assert len({run.info.run_name for run in found}) == len(found)
        return {run.info.run_name: run for run in found}

    def curve(self, run: str, metric: str) -> list[tuple[int, float]]:
        run_id = self.runs()[run].info.run_id
        return [(m.step, m.value) for m in self.client.get_metric_history(run_id, metric)]

    def files(self, run: str, folder: str | None = None) -> list[str]:
        run_id = self.runs()[run].info.run_id
        return [file.path for file in self.client.list_artifacts(run_id, folder)]


@pytest.fixture
def server(tmp_path: Path, empty_store: Path) -> Server:
    return Server(tmp_path / "server", empty_store)


@pytest.fixture
def recorded(run_dir: Path) -> Path:
    """A run with a child and files."""
    with Tracker.open(run_dir, run_name="r", tags={"tag": "t"}) as tracker:
        record(tracker, range(NUM_STEPS))
        tracker.params({f"p{n}": n for n in range(130)})
        tracker.note("Result", "**4**")
        (run_dir / "a.txt").write_text("a")
        tracker.artifact(run_dir / "a.txt", "figures")
        child = tracker.child("c")
        child.metrics({"a": 1}, 3)
        child.finish("failed")
    return run_dir


def record(tracker: Tracker, steps: range) -> None:
    for step in steps:
        tracker.metrics({"a": step / 2, "b": -step, "c": float("inf")}, step)


def copied(run_dir: Path, server: Server) -> Copy:
    copy, file = Copy(run_dir.parent, server.uri), read_run_file(run_dir)
    assert file is not None
    family = LocalStore(run_dir.parent).family("metasched", file.key)
    copy.copy(run.info.run_id for run in family)
    return copy


def test_everything_arrives_and_a_second_copy_changes_nothing(
    recorded: Path, server: Server, runs: Runs
) -> None:
    for _ in range(2):
        copied(recorded, server)
        run, here = server.runs()["r"], runs()["r"]
        assert run.data.params == here.data.params
        assert run.data.tags["tag"] == "t"
        assert run.data.tags[NOTE_TAG] == here.data.tags[NOTE_TAG]
        assert server.curve("r", "a") == [(step, step / 2) for step in range(NUM_STEPS)]
        assert len(server.curve("r", "c")) == NUM_STEPS
        for field in ("status", "start_time", "end_time"):
            assert getattr(run.info, field) == getattr(here.info, field)
        assert server.files("r", "figures") == ["figures/a.txt"]
        child = server.runs()["c"]
        assert child.info.status == "FAILED"
        assert child.data.tags["mlflow.parentRunId"] == run.info.run_id
    again = copied(recorded, server)
    assert (again.num_points, again.num_files) == (0, 0)


def test_others_write_to_the_local_store_while_a_server_takes_its_time(
    recorded: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "POINTS_AT_ONCE", 3)
    points = LocalStore(recorded.parent).points_after(runs()["r"].info.run_id, 0)
    first = [next(points) for _ in range(4)]
    database = local_store(recorded.parent)
    with contextlib.closing(sqlite3.connect(database, timeout=0.0)) as other:
        other.execute("BEGIN EXCLUSIVE")
    rows = [row for row, _ in (*first, *points)]
    assert len(rows) == 3 * NUM_STEPS
    assert rows == sorted(set(rows))


def test_only_what_is_new_is_sent(recorded: Path, server: Server) -> None:
    copied(recorded, server)
    tracker = Tracker.open(recorded)
    record(tracker, range(NUM_STEPS - 10, NUM_STEPS + 20))
    (recorded / "b.txt").write_text("b")
    tracker.artifact(recorded / "b.txt")
    tracker.close()
    again = copied(recorded, server)
    assert (again.num_points, again.num_files) == (60, 1)
    assert server.curve("r", "a") == [(step, step / 2) for step in range(NUM_STEPS + 20)]
    assert server.runs()["r"].info.status == "RUNNING"
    assert server.files("r") == ["b.txt", "figures"]


@pytest.mark.parametrize("call", ["points", "params", "artifact", "tags", "end"])
def test_a_server_that_fails_in_the_middle_gets_the_rest_later(
    recorded: Path, server: Server, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    send, calls = getattr(Store, call), []

    def fail_once(store: Store, *given: Any, **options: Any) -> None:
        send(store, *given, **options)
        calls.append(given)
        if len(calls) == 1:
            raise ConnectionError("the answer was lost, the points were not")

    monkeypatch.setattr(Store, call, fail_once)
    with pytest.raises(StoreAway, match="the answer was lost"):
        copied(recorded, server)
    copied(recorded, server)
    assert server.curve("r", "a") == [(step, step / 2) for step in range(NUM_STEPS)]
    assert server.runs()["r"].info.status == "FINISHED"
    assert server.files("r", "figures") == ["figures/a.txt"]


def test_a_server_that_stores_files_keeps_a_point_once(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (recorded.parent / "mlruns").as_uri()
    for _ in range(2):
        Copy(recorded.parent, uri).copy([run.info.run_id for run in family(recorded)])
    client = mlflow.MlflowClient(uri, uri)
    experiment = client.get_experiment_by_name("metasched").experiment_id
    found = {run.info.run_name: run for run in client.search_runs([experiment])}
    history = client.get_metric_history(found["r"].info.run_id, "a")
    assert [point.step for point in history] == list(range(NUM_STEPS))


def family(run_dir: Path) -> list[Any]:
    file = read_run_file(run_dir)
    assert file is not None
    return LocalStore(run_dir.parent).family("metasched", file.key)


def test_what_the_server_refuses_holds_nothing_up(
    recorded: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

    def refuse(*given: Any) -> None:
        raise MlflowException("too many for password=x1y2z3", INVALID_PARAMETER_VALUE)

    monkeypatch.setattr(Store, "params", refuse)
    copy = copied(recorded, server)
    assert copy.refused == ["parameters (too many for password=***)"] * 2
    assert len(server.curve("r", "a")) == NUM_STEPS
    assert server.runs()["r"].info.status == "FINISHED"


def test_a_run_deleted_on_the_server_is_sent_anew(recorded: Path, server: Server) -> None:
    copied(recorded, server)
    first = server.runs()["r"].info.run_id
    server.client.delete_run(first)
    copied(recorded, server)
    assert server.runs()["r"].info.run_id != first
    assert len(server.curve("r", "a")) == NUM_STEPS


def test_words_of_others_in_a_description_stay(recorded: Path, server: Server) -> None:
    copied(recorded, server)
    run = server.runs()["r"]
    server.client.set_tag(run.info.run_id, NOTE_TAG, f"Mine.\n\n{run.data.tags[NOTE_TAG]}")
    with Tracker.open(recorded) as tracker:
        tracker.note("Result", "**3**")
    copied(recorded, server)
    note = server.runs()["r"].data.tags[NOTE_TAG]
    assert re.match(r"Mine\.\n\n<!-- metasched result -->\n### Result\n\n\*\*3\*\*\n", note)
    assert note.count("### Result") == 1


def test_links_out_of_the_store_are_not_followed(
    recorded: Path, server: Server, runs: Runs, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("key")
    folder = recorded.parent / "mlartifacts" / "metasched" / runs()["r"].info.run_id / "artifacts"
    (folder / "figures" / "x.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(StoreAway, match="lead out of"):
        copied(recorded, server)
    assert "key" not in "".join(path.read_text() for path in (tmp_path / "server").rglob("*.txt"))
    assert len(server.curve("r", "a")) == NUM_STEPS


def test_files_come_from_beside_the_database_whatever_address_it_has(
    recorded: Path, server: Server, tmp_path: Path
) -> None:
    import sqlite3

    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "id_rsa").write_text("key")
    with sqlite3.connect(local_store(recorded.parent)) as database:
        address = (tmp_path / "home").as_uri()
        database.execute("UPDATE runs SET artifact_uri = ?", (address,))
        database.execute("UPDATE experiments SET artifact_location = ?", (address,))
    copied(recorded, server)
    assert server.files("r") == ["figures"]


def change_size(file: Path) -> None:
    file.write_text("longer than it was")


def change_time(file: Path) -> None:
    os.utime(file, ns=(1, 1))


@pytest.mark.parametrize("change", [change_size, change_time, Path.unlink])
@pytest.mark.parametrize("name", ["a.png", "b.csv", "below/c.json"])
def test_a_change_of_any_file_of_a_folder_is_sent_again(
    change: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    folder = tmp_path / "figures"
    (folder / "below").mkdir(parents=True)
    for one in ("a.png", "b.csv", "below/c.json"):
        (folder / one).write_text("as it was")
    before = _digest(folder)
    assert _digest(folder) == before
    change(folder / name)
    assert _digest(folder) != before
