"""A disk that is full: checkpoints before stay whole, training goes on, and the end says so."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster_env.core.errors import Failure
from rllib_configs.config.loading import load_config
from tune_jobs.runs import checkpoints
from tune_jobs.runs.checkpoints import Checkpoints
from tune_jobs.runs.directory import create_run
from tune_jobs.runs.history import History
from tune_jobs.runs.resuming import find_resumption
from tune_jobs.runs.training import RetryingWriter, run_training
from tune_jobs.terminal.files import append_whole
from tune_jobs.terminal.progress import NoProgress


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill(folder: Path) -> None:
    (folder / "weights").write_bytes(b"1" * 5000)


def half(folder: Path) -> None:
    (folder / "weights").write_bytes(b"1" * 100)
    full()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process grows beyond that; what would is refused by the system."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Said(NoProgress):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


@pytest.mark.parametrize("stage", ["fill", "_write_manifest", "sync_tree"])
def test_a_checkpoint_that_fails_at_any_stage_leaves_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    kept = Checkpoints(tmp_path / "checkpoints")
    kept.write(1, fill, keep=1)
    with monkeypatch.context() as patch:
        if stage != "fill":
            patch.setattr(checkpoints, stage, full)
        with pytest.raises(OSError, match="No space left"):
            kept.write(2, half if stage == "fill" else fill, keep=1)
    assert [path.name for path in kept.folder.iterdir()] == ["iteration_000001"]
    assert kept.newest().iteration == 1
    assert kept.write(2, fill, keep=1).damage() is None


def test_a_row_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "table"
    append_whole(path, "a" * 90)
    with largest_file(100), pytest.raises(OSError, match=r"No space left|too large"):
        append_whole(path, "b" * 20)
    assert path.read_text() == "a" * 90
    append_whole(path, "c")
    assert path.read_text().endswith("ac")


def test_a_table_that_cannot_get_a_column_stays_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path / "metrics.csv")
    history.append(1, {"a": 1.0})
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space left"):
            history.append(2, {"a": 1.0, "b": 2.0})
    assert history.rows() == [{"iteration": 1, "a": 1.0}]
    history.append(3, {"a": 3.0})
    assert history.rows()[1:] == [{"iteration": 2, "a": 1.0, "b": 2.0}, {"iteration": 3, "a": 3.0}]


def test_rows_wait_in_memory_and_the_end_is_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = create_run(load_config("deeprm-smoke"), tmp_path / "run")
    said = Said()
    keeper = RetryingWriter(run, said)
    with monkeypatch.context() as patch:
        patch.setattr("tune_jobs.runs.history.append_whole", full)
        patch.setattr(Path, "write_text", full)
        keeper.append(1, {"a": 1.0})
        keeper.append(2, {"a": 2.0})
        with pytest.raises(
            Failure,
            match=r"No space left on.*there is none yet; make room and begin it again",
        ):
            keeper.require_all()
    keeper.append(3, {"a": 3.0})
    assert [row["a"] for row in run.history.rows()] == [1, 2, 3]
    assert len(said.lines) == 1
    run.checkpoints.write(3, fill, keep=1)
    with keeper.saving(4):
        full()
    assert said.lines[1].startswith("iteration 4: no checkpoint could be written (No space left")
    assert "that of iteration 3 is whole; training goes on" in said.lines[1]
    with pytest.raises(Failure, match="that of iteration 3 is whole; make room and resume"):
        keeper.require_all()
    with keeper.saving(5):
        pass
    keeper.require_all()


@pytest.mark.integration
@pytest.mark.parametrize("ends_full", [False, True])
def test_a_run_goes_on_while_the_disk_is_full(
    local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_full: bool
) -> None:
    original: Callable = Checkpoints.write

    def write(self: Checkpoints, iteration: int, *args: object) -> object:
        if iteration < 3 or (iteration == 4 and not ends_full):
            return original(self, iteration, *args)
        with largest_file(3000):
            return original(self, iteration, *args)

    monkeypatch.setattr(Checkpoints, "write", write)
    settings = ["tracking.enabled=false", "checkpoint.every=1", "evaluation.every=0"]
    said = Said()
    run = tmp_path / "run"
    config = load_config("deeprm-smoke", settings)
    if ends_full:
        with pytest.raises(Failure, match=r"could not be written .*iteration 2 is whole"):
            run_training(config, run_dir=run, progress=said)
        assert find_resumption(run).checkpoint.iteration == 2
        assert "train --resume" in said.lines[-1]
    else:
        assert run_training(config, run_dir=run, progress=said).num_iterations == 4
        assert [c.iteration for c in Checkpoints(run / "checkpoints").all()] == [2, 4]
    assert sum("iteration 3: no checkpoint could be written" in line for line in said.lines) == 1
    assert [row["iteration"] for row in History(run / "metrics.csv").rows()] == [1, 2, 3, 4]
