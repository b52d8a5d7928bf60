"""``metasched train``: what it leaves behind, resuming, stopping, and input that it refuses."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.evaluation.summary import flat_summary
from cluster_env.workloads import sample_jobsets
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import prepare
from rllib_configs.policy_files import load_policy
from tests.ports import free_ports
from tests.waiting import PATIENCE_S, started, wait_for
from tune_jobs import cli
from tune_jobs.figures import draw_figure
from tune_jobs.processes.ray_session import without_ray_chatter
from tune_jobs.runs.directory import create_run, open_run
from tune_jobs.runs.history import History
from tune_jobs.runs.resuming import _check_changes, find_continuation, find_resumption
from tune_jobs.runs.training import RunResult, run_training
from tune_jobs.terminal.progress import NoProgress
from tune_jobs.tracking import local_uri

# Measured with a clock, or a sum whose last digits depend on where an array lies in memory.
INEXACT = ("time/", "workers/", "train/gradient_norm")


def smoke(tmp_path: Path, *overrides: str):
    return load_config(
        "deeprm-smoke", [f"runs={tmp_path / 'runs'}", "tracking.enabled=false", *overrides]
    )


@pytest.fixture(scope="module")
def trained(local_ray, tmp_path_factory) -> RunResult:
    """A whole run of four iterations."""
    return run_training(smoke(tmp_path_factory.mktemp("trained")), draw=draw_figure)


@pytest.fixture
def copied(trained, tmp_path) -> Path:
    """A copy of it that a test may change."""
    shutil.copytree(trained.run.path, tmp_path / "copy")
    return tmp_path / "copy"


def numbers(history: History) -> list[dict[str, float]]:
    """All rows without what is inexact."""
    return [
        {name: value for name, value in row.items() if not name.startswith(INEXACT)}
        for row in history.rows()
    ]


@pytest.mark.integration
class TestRun:
    def test_it_leaves_what_the_readme_promises(self, trained):
        run = trained.run
        assert {path.name for path in run.path.iterdir()} >= {
            "config.yaml",
            "metrics.csv",
            "policy",
            "checkpoints",
        }
        assert {path.name for path in run.figures.iterdir()} == {
            "learning-curves.csv",
            "learning-curves.png",
        }
        assert [checkpoint.iteration for checkpoint in run.checkpoints.all()] == [2, 4]
        assert all(checkpoint.damage() is None for checkpoint in run.checkpoints.all())
        assert trained.num_iterations == 4
        assert trained.exit_status == 0

    def test_the_table_has_a_row_for_each_iteration_and_evaluations_when_due(self, trained):
        rows = trained.run.history.rows()
        assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
        assert ["eval/slowdown" in row for row in rows] == [False, True, False, True]
        assert rows[-1]["eval/slowdown"] == trained.evaluation["slowdown"]
        assert all(row["train/return_mean"] < 0 for row in rows)
        assert rows[-1]["total/episodes"] == 4 * 4 * 4

    def test_the_saved_policy_is_the_one_that_was_evaluated(self, trained):
        policy, config = load_policy(trained.run.path)
        jobsets = sample_jobsets(
            config.task.build_workload(), config.seed, Split.VALIDATION, range(10)
        )
        world = config.task.world
        again = evaluate(policy, jobsets, world, run_seed=config.seed)
        assert flat_summary(again, world) == trained.evaluation

    def test_each_checkpoint_holds_the_policy_of_its_iteration(self, trained):
        checkpoints = trained.run.checkpoints.all()
        for checkpoint in checkpoints:
            load_policy(checkpoint.path)
        early, late = ((each.path / "policy" / "weights.pt").read_bytes() for each in checkpoints)
        assert early != late
        assert late == (trained.run.policy / "weights.pt").read_bytes()

    def test_a_run_can_be_made_longer_from_an_older_checkpoint(self, trained, copied, local_ray):
        chosen = copied / "checkpoints" / "iteration_000002"
        resumption = find_resumption(chosen, ["training.iterations=5", "evaluation.every=0"])
        resumed = run_training(resumption.config, resume=resumption)
        assert [row["iteration"] for row in resumed.run.history.rows()] == [1, 2, 3, 4, 5]
        assert [c.iteration for c in resumed.run.checkpoints.all()] == [4, 5]
        assert resumed.run.config().training.iterations == 5

    @pytest.mark.parametrize("lost", ["a checkpoint", "all checkpoints", "nothing"])
    def test_a_command_goes_on_wherever_it_was_lost(self, lost, trained, copied, local_ray):
        checkpoints = copied / "checkpoints"
        if lost == "a checkpoint":
            (checkpoints / "iteration_000004" / "manifest.json").write_text("{}")
        elif lost == "all checkpoints":
            shutil.rmtree(checkpoints)
        resumption = find_continuation(copied, trained.run.config())
        left = {"a checkpoint": 2, "all checkpoints": None, "nothing": 4}[lost]
        assert (resumption.checkpoint and resumption.checkpoint.iteration) == left
        resumed = run_training(resumption.config, resume=resumption)
        assert resumed.num_iterations == 4
        assert numbers(resumed.run.history) == numbers(trained.run.history)
        assert (copied / "policy" / "weights.pt").read_bytes() == (
            trained.run.policy / "weights.pt"
        ).read_bytes()

    @pytest.mark.parametrize("how", ["--run", "--resume"])
    def test_a_start_that_was_killed_is_no_dead_end(self, how, trained, tmp_path):
        lost = tmp_path / "lost"
        begin = [
            "deeprm-smoke",
            "--set",
            "tracking.enabled=false",
            "--set",
            f"runs={trained.run.path.parent}",
        ]
        run = create_run(prepare(trained.run.config()), lost)
        run.history.append(1, {"a": 1})
        (lost / "checkpoints").mkdir()
        (lost / "checkpoints" / ".iteration_000002.part").mkdir()
        again = [*begin, "--run", str(lost)] if how == "--run" else ["--resume", str(lost)]
        assert cli.run(cli.metasched, ["train", *again]) == 2  # its process lives
        run.unlock()
        assert cli.run(cli.metasched, ["train", *again]) == 0
        assert numbers(open_run(lost).history) == numbers(trained.run.history)
        assert cli.run(cli.metasched, ["train", *begin, "--run", str(lost)]) == 2

    @pytest.mark.parametrize("text", [None, b"\xff\n", b"1,2\n3,4\n"])
    def test_a_run_whose_metrics_are_lost_goes_on(self, text, trained, copied, local_ray):
        """So they were after rows had been appended to a new file, without a header."""
        (copied / "metrics.csv").unlink()
        if text is not None:
            (copied / "metrics.csv").write_bytes(text)
        shutil.rmtree(copied / "checkpoints" / "iteration_000004")
        resumed = run_training(find_resumption(copied).config, resume=find_resumption(copied))
        assert numbers(resumed.run.history) == numbers(trained.run.history)

    def test_a_run_whose_metrics_vanish_while_it_trains_ends_with_all_of_them(
        self, trained, tmp_path, local_ray
    ):
        run = tmp_path / "run"

        class Remove(NoProgress):
            def step(self, done: int, text: str) -> None:
                if done in (1, 3):  # an evaluation, and so a new column, comes next
                    (run / "metrics.csv").unlink()

        resumed = run_training(smoke(tmp_path), run_dir=run, progress=Remove())
        assert numbers(resumed.run.history) == numbers(trained.run.history)

    def test_a_command_begins_where_no_run_is(self, trained, tmp_path):
        assert find_continuation(tmp_path / "new", trained.run.config()) is None

    def test_a_stopped_run_has_a_checkpoint_of_its_last_iteration(self, local_ray, tmp_path):
        config = smoke(tmp_path, "training.iterations=100000", "checkpoint.every=0")
        said: list[str] = []

        class StopAfterThree(NoProgress):
            def step(self, done: int, text: str) -> None:
                if done == 3:
                    os.kill(os.getpid(), signal.SIGTERM)

            def say(self, text: str) -> None:
                said.append(text)

        result = run_training(config, progress=StopAfterThree())
        assert result.exit_status == 143
        assert result.num_iterations == 3
        assert result.run.checkpoints.newest().iteration == 3
        assert f"train --resume {result.run.path}" in said[-1]

    def test_a_run_in_ray_s_copy_of_the_working_directory_says_so(self, local_ray, tmp_path):
        """There ``ray job submit --working-dir`` begins what names no folder."""
        said: list[str] = []
        progress = NoProgress()
        progress.say = said.append
        for folder in ("kept", "_ray_pkg_0a1b"):
            run_training(smoke(tmp_path / folder, "training.iterations=1"), progress=progress)
            assert ("Ray's copy of the working directory" in " ".join(said)) == (folder != "kept")

    def test_a_failing_iteration_keeps_the_last_checkpoint(self, local_ray, tmp_path, monkeypatch):
        from rllib_configs import builders

        def fail(result):
            if result["training_iteration"] == 3:
                raise RuntimeError("the learner is gone")
            return original(result)

        original = builders.iteration_metrics
        monkeypatch.setattr(builders, "iteration_metrics", fail)
        config = smoke(tmp_path)
        with pytest.raises(RuntimeError, match="the learner is gone"):
            run_training(config, run_dir=tmp_path / "run")
        assert find_resumption(tmp_path / "run").checkpoint.iteration == 2

    def test_a_store_that_is_away_does_not_stop_training(self, local_ray, tmp_path):
        import mlflow

        (port,) = free_ports(1)
        config = smoke(tmp_path, "tracking.enabled=true", f"tracking.uri=http://127.0.0.1:{port}")
        result = run_training(config)
        assert result.num_iterations == 4
        client = mlflow.MlflowClient(local_uri(result.run.path.parent))
        (run,) = client.search_runs(["1"])
        points = client.get_metric_history(run.info.run_id, "train/return_mean")
        assert [point.step for point in points] == [1, 2, 3, 4]

    def test_what_a_killed_process_had_not_recorded_is_there_after_a_resume(
        self, local_ray, tmp_path, monkeypatch
    ):
        import mlflow

        monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        config = smoke(tmp_path, "tracking.enabled=true", "training.iterations=2")
        with monkeypatch.context() as patched:  # as if it was killed before the first write
            patched.setattr("tune_jobs.tracking.writer.Writer._write_all", lambda writer: None)
            run = run_training(config).run
        resumption = find_resumption(run.path, ["training.iterations=4"])
        run_training(resumption.config, resume=resumption)
        client = mlflow.MlflowClient(local_uri(run.path.parent))
        (found,) = client.search_runs(["1"])
        for name in ("train/return_mean", "Result/slowdown"):
            points = client.get_metric_history(found.info.run_id, name)
            rows = run.history.rows()
            column = name.replace("Result", "eval")
            assert [p.step for p in points] == [r["iteration"] for r in rows if column in r]
        references = client.get_metric_history(found.info.run_id, "reference/sjf")
        assert [p.step for p in references] == [0]
        assert found.info.status == "FINISHED"


class TestRefusals:
    """Each gives one sentence and status 2, before Ray has started."""

    @pytest.fixture(autouse=True)
    def no_ray(self, monkeypatch):
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        monkeypatch.setattr("ray.init", lambda *args, **kwargs: pytest.fail("Ray was started"))

    def refused(self, capsys, *args: str) -> str:
        assert cli.run(cli.metasched, ["train", *args]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    def test_an_unknown_preset(self, capsys):
        assert "did you mean 'deeprm-smoke'?" in self.refused(capsys, "deeprm-smok")

    def test_more_runners_than_cpus(self, capsys):
        many = ("training.jobsets=10000", "training.jobsets_per_unit=1")
        sets = [word for setting in many for word in ("--set", setting)]
        error = self.refused(capsys, "deeprm", *sets, "--runners", "10000")
        assert "10000 runners" in error
        assert f"{len(os.sched_getaffinity(0))} CPUs" in error

    @pytest.mark.parametrize(
        ("preset", "units", "what"),
        [
            ("deeprm-ppo", 4, "set training.jobsets_per_unit lower"),
            ("hpc-order", 40, "set training.jobsets_per_unit lower"),
            ("deeprm-maml", 8, "set training.tasks higher"),
            ("fuzzy-td", 5, "set training.jobsets_per_unit lower"),
        ],
    )
    def test_more_runners_than_units(self, capsys, preset, units, what):
        error = self.refused(capsys, preset, "--runners", str(units + 1))
        assert f"{units + 1} runners were asked for" in error
        assert f"has {units} units of work" in error
        assert f"--runners {units}, or {what}" in error

    @pytest.mark.parametrize("address", ["nowhere", "http://host:80", "host:port"])
    def test_an_address_of_another_form(self, capsys, address):
        assert "HOST:PORT" in self.refused(capsys, "deeprm-smoke", "--address", address)

    def test_an_address_where_nobody_answers(self, capsys):
        address = f"127.0.0.1:{free_ports(1)[0]}"
        assert "no Ray cluster answers" in self.refused(
            capsys, "deeprm-smoke", "--address", address
        )

    def test_a_folder_that_is_in_use(self, capsys, tmp_path):
        (tmp_path / "file").touch()
        assert "not empty" in self.refused(capsys, "deeprm-smoke", "--run", str(tmp_path))

    def test_resuming_with_a_preset(self, capsys, tmp_path):
        assert "--resume" in self.refused(capsys, "deeprm", "--resume", str(tmp_path))

    def test_resuming_what_is_no_run(self, capsys, tmp_path):
        assert "no run" in self.refused(capsys, "--resume", str(tmp_path))

    def test_resuming_a_finished_run(self, capsys, trained):
        error = self.refused(capsys, "--resume", str(trained.run.path))
        assert "all of its 4 iterations" in error

    def test_changing_what_results_depend_on(self, capsys, trained):
        error = self.refused(capsys, "--resume", str(trained.run.path), "--set", "training.lr=0.5")
        assert "training.lr cannot change from 0.001 to 0.5" in error

    def test_another_run_in_the_folder_that_never_saved(self, capsys, tmp_path):
        run = str(tmp_path / "run")
        create_run(prepare(load_config("deeprm-smoke")), tmp_path / "run").unlock()
        error = self.refused(capsys, "deeprm-smoke", "--run", run, "--seed", "5")
        assert "seed cannot change from 0 to 5" in error

    def test_going_on_with_another_run(self, capsys, copied):
        config = str(copied / "config.yaml")
        error = self.refused(capsys, config, "--run", str(copied), "--continue", "--seed", "5")
        assert "seed cannot change from 0 to 5" in error

    @pytest.mark.parametrize("more", [[], ["--run", "x", "--resume", "y"]])
    def test_going_on_without_saying_where(self, capsys, more):
        assert "--run" in self.refused(capsys, "deeprm-smoke", "--continue", *more)

    def test_a_damaged_checkpoint(self, capsys, copied):
        weights = copied / "checkpoints" / "iteration_000004" / "policy" / "weights.pt"
        weights.write_bytes(weights.read_bytes()[:-1] + b"?")
        error = self.refused(capsys, "--resume", str(copied), "--set", "training.iterations=9")
        assert "policy/weights.pt has changed" in error
        assert f"resume from the one before: {copied / 'checkpoints' / 'iteration_000002'}" in error


def test_only_ray_s_own_chatter_is_dropped(capfd):
    chatter = "[2026-01-02 03:04:05,678 E 12 34] core_worker.cc:2465: Actor with class name"
    with without_ray_chatter():
        os.write(2, f"{chatter}\nkeep this\n".encode())
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "keep this\nlater\n"


def test_only_harmless_settings_may_change_on_resume():
    before = load_config("deeprm-smoke")
    harmless = [
        "training.iterations=9",
        "resources.num_runners=1",
        "tracking.enabled=false",
        "evaluation.every=1",
        "checkpoint.keep=7",
    ]
    _check_changes(before, load_config("deeprm-smoke", harmless))
    for override in (
        "seed=1",
        "training.hidden=3",
        "task.world.rules=released",
        "evaluation.jobsets=3",
    ):
        with pytest.raises(InputError, match="cannot change"):
            _check_changes(before, load_config("deeprm-smoke", [override]))


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_the_command_stops_cleanly_when_its_whole_group_is_interrupted(tmp_path):
    """As a terminal does it on Ctrl-C: Ray's processes get the signal too."""
    run = tmp_path / "run"
    args = ["deeprm-smoke", "--run", str(run), "--set", "tracking.enabled=false", "--runners", "1"]
    endless = ["--set", "training.iterations=1000000"]
    command = [sys.executable, "-m", "tune_jobs.train", *args, *endless]
    with started(command, stderr=subprocess.PIPE, text=True) as process:
        rows = History(run / "metrics.csv").rows
        wait_for(lambda: len(rows()) >= 3, "the third iteration", process=process)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, error
    assert f"train --resume {run}" in error
    assert "Traceback" not in error
    newest = find_resumption(run).checkpoint
    assert newest.iteration == History(run / "metrics.csv").rows()[-1]["iteration"]
