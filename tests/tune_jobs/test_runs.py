"""Run directories, checkpoints and the table of metrics: whole, or not there."""

import math
import threading
from datetime import datetime
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.runs.checkpoints import MANIFEST, Checkpoint, Checkpoints, as_checkpoint
from tune_jobs.runs.directory import create_run, discard_run, open_run
from tune_jobs.runs.history import History
from tune_jobs.terminal.files import replacing

NOW = datetime(2026, 1, 2, 3, 4, 5)


def spoil(path: Path, text: str | bytes | None) -> None:
    """Writes something else to a file, or removes it."""
    path.unlink()
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def config(tmp_path) -> ExperimentConfig:
    return ExperimentConfig(name="small", seed=7, runs=tmp_path / "runs")


def fill(folder: Path) -> None:
    (folder / "algorithm").mkdir()
    (folder / "algorithm" / "state").write_bytes(b"weights")
    (folder / "note.txt").write_text("hello")


class TestRunDirectory:
    def test_its_name_says_what_when_and_which_seed(self, config):
        run = create_run(config, now=NOW)
        assert run.path == config.runs / "small-20260102-030405-s7"
        assert run.config() == config

    def test_two_runs_of_the_same_second_get_two_folders(self, config):
        assert create_run(config, now=NOW).path != create_run(config, now=NOW).path

    def test_a_folder_can_be_chosen(self, config, tmp_path):
        assert create_run(config, tmp_path / "mine").path == tmp_path / "mine"

    def test_a_folder_in_use_is_refused(self, config, tmp_path):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").touch()
        with pytest.raises(InputError, match="not empty"):
            create_run(config, tmp_path / "mine")
        create_run(config, tmp_path / "run").unlock()
        with pytest.raises(InputError, match="holds a run already; resume it"):
            create_run(config, tmp_path / "run")

    def test_what_a_run_leaves_that_is_killed_as_it_begins_is_no_hindrance(self, config, tmp_path):
        folder = tmp_path / "mine"
        folder.mkdir()
        for name in (".lock", ".config.yaml.123.part"):
            (folder / name).touch()
        assert create_run(config, folder).config() == config

    def test_a_process_that_ends_soon_is_waited_for(self, config, tmp_path):
        first = create_run(config, tmp_path / "mine")
        second = open_run(tmp_path / "mine")
        threading.Timer(0.2, first.unlock).start()
        second.lock(wait_s=30)
        third = open_run(tmp_path / "mine")
        with pytest.raises(InputError, match="in use by another process"):
            third.lock(wait_s=0.01)

    def test_a_file_in_the_place_is_refused(self, config, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match="is a file"):
            create_run(config, tmp_path / "file")
        with pytest.raises(InputError, match="cannot write"):
            create_run(config, tmp_path / "file" / "below")

    def test_a_name_that_leaves_the_folder_is_refused(self, config):
        with pytest.raises(InputError, match="name"):
            create_run(config.model_copy(update={"name": "../outside"}))

    @pytest.mark.parametrize("name", ["missing", "."])
    def test_opening_what_is_no_run_says_so(self, tmp_path, name):
        with pytest.raises(InputError, match="no run"):
            open_run(tmp_path / name)

    def test_one_writer_at_a_time(self, config):
        run = create_run(config)
        other = open_run(run.path)
        with pytest.raises(InputError, match="in use by another process"):
            other.lock()
        run.unlock()
        other.lock()

    def test_only_a_run_that_never_trained_is_discarded(self, config):
        run = create_run(config)
        discard_run(run)
        assert not run.path.exists()
        run = create_run(config)
        run.history.append(1, {})
        discard_run(run)
        assert run.path.exists()

    def test_the_policy_is_replaced_file_by_file(self, config):
        run = create_run(config)
        run.write_policy(lambda folder: (folder / "weights.pt").write_text("old"))
        run.write_policy(lambda folder: (folder / "weights.pt").write_text("new"))
        assert (run.policy / "weights.pt").read_text() == "new"
        assert sorted(path.name for path in run.path.iterdir()) == [
            ".lock",
            "config.yaml",
            "policy",
        ]

    @pytest.mark.parametrize("text", [None, "", "x,y\n1,2\n", b"\xff\0,\n", "iteration,a\n1,1\n"])
    def test_going_back_to_a_checkpoint_finds_the_table_in_it(self, config, caplog, text):
        run = create_run(config)
        for iteration in (1, 2, 3):
            run.history.append(iteration, {"a": iteration / 2})
            run.write_checkpoint(iteration, fill, keep=2)
        spoil(run.history.path, text)
        again = open_run(run.path)
        again.go_back(again.checkpoints.all()[0])
        again.history.append(3, {"a": 9})
        assert run.history.path.read_text() == "iteration,a\n1,0.5\n2,1\n3,9\n"
        assert [checkpoint.iteration for checkpoint in again.checkpoints.all()] == [2]
        assert "lost or damaged; it is made again from" in caplog.text

    def test_a_table_that_is_nowhere_begins_again_and_what_was_there_stays(self, config, caplog):
        run = create_run(config)
        run.checkpoints.write(3, fill, keep=1)  # by a version that kept no copy
        run.history.path.write_bytes(b"\xff")
        run.go_back(run.checkpoints.newest())
        run.history.append(4, {"a": 9})
        assert run.history.path.read_text() == "iteration,a\n4,9\n"
        assert (run.path / "metrics.csv.damaged").read_bytes() == b"\xff"
        assert "until iteration 3 are lost" in caplog.text


class TestCheckpoints:
    def test_the_newest_are_kept_in_order(self, tmp_path):
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        for iteration in (5, 10, 100):
            checkpoints.write(iteration, fill, keep=2)
        assert [checkpoint.iteration for checkpoint in checkpoints.all()] == [10, 100]
        newest = checkpoints.newest()
        assert newest == Checkpoint(tmp_path / "checkpoints" / "iteration_000100", 100)
        assert (newest.path / "algorithm" / "state").read_bytes() == b"weights"

    def test_a_crash_while_writing_leaves_the_one_before(self, tmp_path):
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        checkpoints.write(1, fill, keep=2)

        def crash(folder: Path) -> None:
            fill(folder)
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            checkpoints.write(2, crash, keep=2)
        assert checkpoints.newest().iteration == 1
        checkpoints.write(2, fill, keep=2)
        assert sorted(path.name for path in checkpoints.folder.iterdir()) == [
            "iteration_000001",
            "iteration_000002",
        ]

    def test_an_iteration_can_be_written_again(self, tmp_path):
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        checkpoints.write(1, fill, keep=1)
        checkpoints.write(1, lambda folder: (folder / "other").touch(), keep=1)
        assert [path.name for path in checkpoints.newest().path.iterdir()].count("other") == 1

    @pytest.mark.parametrize(
        ("name", "text", "reason"),
        [
            ("note.txt", "hellO", "note.txt has changed"),
            ("note.txt", "", "note.txt has changed"),
            ("note.txt", None, "note.txt is missing"),
            (MANIFEST, None, f"it has no {MANIFEST}"),
            (MANIFEST, "{", f"its {MANIFEST} cannot be read"),
            (MANIFEST, "[]", f"its {MANIFEST} cannot be read"),
            (MANIFEST, '{"format": 1, "iteration": 3, "files": {}}', "something else"),
        ],
    )
    def test_a_damaged_one_is_named_and_the_one_before_is_offered(
        self, tmp_path, name, text, reason
    ):
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        checkpoints.write(1, fill, keep=2)
        path = checkpoints.write(2, fill, keep=2).path
        (path / name).unlink()
        if text is not None:
            (path / name).write_text(text)
        with pytest.raises(InputError, match=reason) as caught:
            checkpoints.newest()
        assert "iteration_000002 is damaged" in str(caught.value)
        assert f"resume from the one before: {checkpoints.all()[0].path}" in str(caught.value)

    def test_without_another_one_the_damage_is_all_there_is_to_say(self, tmp_path):
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        with pytest.raises(InputError, match="no checkpoint"):
            checkpoints.newest()
        path = checkpoints.write(2, fill, keep=2).path
        (path / MANIFEST).unlink()
        with pytest.raises(InputError, match="none before"):
            checkpoints.newest()

    def test_later_ones_are_removed(self, tmp_path):
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        for iteration in (1, 2, 3):
            checkpoints.write(iteration, fill, keep=9)
        checkpoints.remove_after(2)
        assert [checkpoint.iteration for checkpoint in checkpoints.all()] == [1, 2]

    def test_a_path_may_name_one(self, tmp_path):
        written = Checkpoints(tmp_path / "checkpoints").write(12, fill, keep=1)
        assert as_checkpoint(written.path) == written
        assert as_checkpoint(tmp_path) is None
        assert as_checkpoint(tmp_path / "checkpoints" / "iteration_000013") is None


class TestHistory:
    def test_rows_come_back_as_they_were(self, tmp_path):
        history = History(tmp_path / "metrics.csv")
        history.append(1, {"a": 0.1 + 0.2, "b": -3})
        history.append(2, {"a": math.nan, "b": 1e300})
        first, second = History(history.path).rows()
        assert first == {"iteration": 1, "a": 0.1 + 0.2, "b": -3}
        assert math.isnan(second["a"])
        assert second["b"] == 1e300

    def test_a_new_metric_widens_the_table(self, tmp_path):
        history = History(tmp_path / "metrics.csv")
        history.append(1, {"a": 1})
        history.append(2, {"a": 2, "eval/slowdown": 3.5})
        history.append(3, {"a": 3})
        assert history.path.read_text() == "iteration,a,eval/slowdown\n1,1,\n2,2,3.5\n3,3,\n"
        assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]

    def test_resuming_cuts_later_rows_and_torn_ones(self, tmp_path):
        history = History(tmp_path / "metrics.csv")
        for iteration in range(1, 6):
            history.append(iteration, {"a": iteration / 2})
        with history.path.open("a") as file:
            file.write("3,1.")
        resumed = History(history.path)
        resumed.go_back(3)
        resumed.append(4, {"a": 9})
        assert history.path.read_text() == "iteration,a\n1,0.5\n2,1\n3,1.5\n4,9\n"

    @pytest.mark.parametrize("text", [None, "", "x,y\n1,2\n", b"\xff\0,\n"])
    def test_a_table_that_is_lost_in_mid_run_is_made_again(self, tmp_path, caplog, text):
        history = History(tmp_path / "metrics.csv")
        for iteration in (1, 2):
            history.append(iteration, {"a": 0.5})
        history.append(3, {"a": 0.5})
        spoil(history.path, text)
        history.append(4, {"a": 0.5})
        spoil(history.path, text)
        history.append(5, {"a": 0.5, "b": 1})
        assert history.path.read_text() == (
            "iteration,a,b\n1,0.5,\n2,0.5,\n3,0.5,\n4,0.5,\n5,0.5,1\n"
        )
        assert caplog.text.count("made again with the rows from iteration 1 on") == 2

    def test_a_table_that_is_lost_as_it_is_copied_or_cut_is_made_again(self, tmp_path):
        history = History(tmp_path / "metrics.csv")
        for iteration in (1, 2, 3):
            history.append(iteration, {"a": 0.5})
        spoil(history.path, None)
        history.copy_to(tmp_path / "copy.csv")
        assert len(History(tmp_path / "copy.csv").rows()) == 3
        spoil(history.path, "")
        history.go_back(2)
        assert history.path.read_text() == "iteration,a\n1,0.5\n2,0.5\n"

    def test_another_table_is_refused(self, tmp_path):
        (tmp_path / "metrics.csv").write_text("x,y\n1,2\n")
        with pytest.raises(InputError, match="iteration"):
            History(tmp_path / "metrics.csv").rows()


def test_a_file_is_replaced_only_when_it_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), replacing(path) as aside:
        aside.write_text("new \udcff")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with replacing(path) as aside:
        aside.write_text("new")
    assert path.read_text() == "new"
