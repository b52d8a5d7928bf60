"""Schedulers, records, the table on screen and the figure, without Ray."""

import io
import json
import math
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from matplotlib.text import Text

from cluster_env.core.errors import InputError
from rllib_configs.loading import load_config, parse_section
from tune_jobs.figures import sweep as sweep_figure
from tune_jobs.runs.trainer import cost_ratio
from tune_jobs.sweeps import launching
from tune_jobs.sweeps.callback import SweepCallback
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.failures import describe
from tune_jobs.sweeps.folder import TrialFile, create_sweep, open_sweep
from tune_jobs.sweeps.points import list_points, trial_config
from tune_jobs.sweeps.progress_table import ProgressTable, TrialLine
from tune_jobs.sweeps.records import TrialRecord, begin_trial, pack, rewind, unpack
from tune_jobs.sweeps.results import FIXED_COLUMNS, best_trials, score_of, table_of, write_results
from tune_jobs.sweeps.schedulers import Evolution, Halving
from tune_jobs.sweeps.searched import Point
from tune_jobs.sweeps.sweeping import SweepResult
from tune_jobs.terminal.tables import write_table
from tune_jobs.tracking import NullTracker


@pytest.fixture
def sweep() -> Sweep:
    data = {
        "preset": "deeprm-smoke",
        "space": {"training.lr": {"grid": [0.1, 0.01, 0.001]}},
        "search": "grid",
    }
    return parse_section(Sweep, data)


@pytest.fixture
def folder(sweep, tmp_path):
    made = create_sweep(sweep, tmp_path)
    yield made
    made.unlock()


def state_of(tmp_path, text: str) -> bytes:
    source = tmp_path / f"state-{text}"
    (source / "policy").mkdir(parents=True)
    (source / "policy" / "weights.pt").write_text(text)
    return pack(source)


def record_of(folder, index: int) -> TrialRecord:
    point = list_points(folder.sweep)[index]
    return begin_trial(folder, point, trial_config(folder.sweep, point, folder.trials))


def finish(folder, index: int, score: float) -> None:
    record = record_of(folder, index)
    record.add(rows(1, 4, score), None, 1.0)
    record.settle("finished")
    record.run.unlock()


def rows(first: int, last: int, score: float) -> list[dict[str, float]]:
    return [{"iteration": float(k), "eval/ratio": score} for k in range(first, last + 1)]


class TestRatio:
    def test_it_is_below_one_for_the_better_policy_whatever_the_metric(self):
        references = {"sjf": 4.0, "tetris": 2.0}
        assert cost_ratio(1.0, references, higher_is_better=False) == 0.5
        assert cost_ratio(8.0, references, higher_is_better=True) == 0.5
        assert math.isnan(cost_ratio(0.0, references, higher_is_better=False))


class TestRecords:
    def test_what_is_done_again_replaces_what_was_done_before(self, folder, tmp_path):
        record = record_of(folder, 0)
        record.add(rows(1, 3, 5.0), state_of(tmp_path, "three"), 1.0)
        record.add(rows(4, 6, 4.0), state_of(tmp_path, "six"), 1.0)
        record.add(rows(4, 5, 4.5), None, 1.0)
        assert [row["iteration"] for row in record.run.history.rows()] == [1, 2, 3, 4, 5]
        assert [each.iteration for each in record.run.checkpoints.all()] == [3]
        assert record.file.busy_s == 3.0
        record.run.unlock()

    def test_a_trial_goes_back_to_its_newest_good_checkpoint(self, folder, tmp_path):
        record = record_of(folder, 0)
        record.add(rows(1, 3, 5.0), state_of(tmp_path, "three"), 1.0)
        record.add(rows(4, 6, 4.0), state_of(tmp_path, "six"), 1.0)
        damaged = record.run.checkpoints.all()[-1]
        (damaged.path / "policy" / "weights.pt").write_text("x")
        found = rewind(record.run)
        assert found is not None
        assert found.iteration == 3
        assert len(record.run.history.rows()) == 3
        assert (found.path / "policy" / "weights.pt").read_text() == "three"
        record.run.unlock()

    def test_a_sweep_is_read_back_and_half_made_trials_are_made_anew(self, folder, tmp_path):
        (folder.trial_path(1)).mkdir()
        (folder.trial_path(1) / "config.yaml").write_text("half")
        record = record_of(folder, 0)
        record.add(rows(1, 4, 5.0), state_of(tmp_path, "a"), 1.0)
        record.settle("finished")
        again = open_sweep(folder.path)
        assert again.sweep == folder.sweep
        (file, run), *others = again.started()
        assert (file.status, file.point, others) == ("finished", record.file.point, [])
        assert run.policy.joinpath("weights.pt").read_text() == "a"
        record_of(folder, 1).run.unlock()
        record.run.unlock()

    def test_two_processes_cannot_sweep_in_one_folder(self, folder):
        with pytest.raises(InputError, match="still sweeping"):
            open_sweep(folder.path).lock()

    def test_a_folder_that_holds_something_is_refused(self, folder, sweep, tmp_path):
        with pytest.raises(InputError, match="--resume"):
            create_sweep(sweep, tmp_path, folder.path)

    def test_nothing_is_unpacked_outside_of_the_folder(self, tmp_path):
        import tarfile

        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("../outside"), io.BytesIO())
        with pytest.raises(tarfile.FilterError):
            unpack(buffer.getvalue(), tmp_path / "inside")
        assert not (tmp_path / "outside").exists()


class TestResults:
    def test_the_best_is_one_that_ran_to_its_end(self, folder, tmp_path):
        for index, (score, status) in enumerate([(3.0, "finished"), (2.0, "finished")]):
            record = record_of(folder, index)
            record.add(rows(1, 4, score), state_of(tmp_path, str(index)), 1.0)
            record.settle(status)
            record.run.unlock()
        record = record_of(folder, 2)
        record.add(rows(1, 1, 1.0), state_of(tmp_path, "2"), 1.0)
        record.settle("stopped")
        record.run.unlock()
        (best,) = best_trials(folder)
        assert best.file.point.index == 1
        table, config = write_results(folder)
        assert [line.split(",")[1:3] for line in table.read_text().splitlines()[1:]] == [
            *(["0", "finished"], ["1", "finished"], ["2", "stopped"])
        ]
        assert config == folder.path / "best.yaml"
        assert load_config(config).training.lr == 0.01
        assert "train" in config.read_text().splitlines()[2]

    def test_the_best_has_the_highest_score_where_high_is_good(self, sweep, tmp_path):
        folder = create_sweep(sweep.model_copy(update={"mode": "max"}), tmp_path)
        for index, score in enumerate([2.0, 3.0, 1.0]):
            finish(folder, index, score)
        assert [best.file.point.index for best in best_trials(folder)] == [1]
        folder.unlock()

    def test_there_is_a_best_trial_of_each_task(self, sweep, tmp_path, capsys):
        space = {
            "task.objective": {"grid": ["slowdown", {"makespan": 1.0}]},
            "task.workload.load": {"uniform": [0.5, 0.6]},
            "training.lr": {"grid": [0.1, 0.01]},
        }
        data = sweep.to_dict() | {"space": space, "search": "random"}
        folder = create_sweep(parse_section(Sweep, data), tmp_path)
        for index, score in enumerate([2.0, 3.0, 0.9, 0.8]):
            finish(folder, index, score)
        assert [best.file.point.index for best in best_trials(folder)] == [0, 3]
        assert [row["best"] for row in table_of(folder)] == [1, 0, 0, 1]
        _, one, other = write_results(folder)
        assert [one.name, other.name] == ["best-slowdown.yaml", "best-makespan-1.0.yaml"]
        assert load_config(one).task.objective == "slowdown"
        folder.unlock()

        launching.report(SweepResult(folder, {"finished": 4, "left": 0}, 0.5, 9.0, 1), False)
        shown = capsys.readouterr().out
        assert shown.count("Best     trial 00") == 2
        assert "best-makespan-1.0.yaml" in shown
        launching.report(SweepResult(folder, {"finished": 4, "left": 0}, 0.5, 9.0, 1), True)
        told = json.loads(capsys.readouterr().out)
        assert [each["task"]["task.objective"] for each in told["best"]] == [
            *("slowdown", {"makespan": 1.0})
        ]
        assert [each["score"] for each in told["best"]] == [2.0, 0.8]

        write_table(tmp_path / "sweep.csv", table_of(folder))
        figure = sweep_figure.draw(tmp_path / "sweep.csv")
        text = " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(Text))
        assert "The best of each task, trial 000 with 2, trial 003 with 0.8, are red" in text

    def test_a_score_is_the_mean_of_the_newest_values(self, sweep):
        noisy = sweep.model_copy(update={"average": 2})
        values = [{"iteration": float(k), "eval/ratio": float(k)} for k in range(1, 5)]
        assert score_of(noisy, [*values, {"iteration": 5.0}]) == 3.5
        assert math.isnan(score_of(noisy, []))


class TestFailures:
    def test_each_is_said_in_true_words(self):
        from ray.exceptions import ActorDiedError, RayTaskError

        failed = RayTaskError("step", "traceback", ValueError("no\nnumber"))
        assert describe(failed) == "ValueError: no number"
        assert describe(RuntimeError("x")) == "RuntimeError: x"
        assert describe(ActorDiedError()).startswith("its process died")
        assert "NoneType" not in describe(None)


def told(scheduler, index: int, iteration: int, score: float, scored: bool = True) -> str:
    trial = SimpleNamespace(trial_id="x", config={"trial": {"index": index}})
    result = {"iteration": iteration, "score": score, "scored": scored}
    return scheduler.on_trial_result(None, trial, result)


class Noting(NullTracker):
    """Keeps descriptions and points, of all trials together."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.points: dict[tuple[str, int], float] = {}

    def note(self, title, text) -> None:
        assert title == "Result"
        self.notes.append(text)

    def metrics(self, metrics, step) -> None:
        self.points |= {(name, step): value for name, value in metrics.items()}


class TestDescriptions:
    def report(self, iterations: int) -> dict:
        row = {"iteration": float(iterations), "eval/ratio": 0.75, "eval/slowdown": 3.0}
        return {
            "rows": [row | {"eval/utilization": 0.5}],
            "state": None,
            "score": 0.75,
            "busy_s": 1.0,
            "references": {"sjf": 4.0, "tetris": 5.0},
            "settings": {"training.lr": 0.1},
            "done": False,
        }

    def test_a_trial_says_how_it_came_out_beside_the_heuristics(self, folder):
        tracker = Noting()
        callback = SweepCallback(folder, tracker, MagicMock())
        point = list_points(folder.sweep)[0]
        trial = SimpleNamespace(trial_id="x", config={"trial": point.as_trial()})
        callback.on_trial_start(0, [], trial)
        callback.on_trial_result(0, [], trial, self.report(1))
        callback.on_trial_result(0, [], trial, self.report(4))
        callback.close()
        first, last = tracker.notes
        assert first == (
            "There is no eval/ratio yet. Trial 000 of the sweep sweep, lr=0.1: 0 of 4 iterations, "
            "running."
        )
        words, _, table = last.partition("\n\n")
        assert words == (
            "**eval/ratio 0.75**. Trial 000 of the sweep sweep, lr=0.1: 4 of 4 iterations, "
            "finished."
        )
        assert table.splitlines() == [
            *("| policy | slowdown |", "| :-- | --: |"),
            *("| this trial | 3 |", "| sjf | 4 |", "| tetris | 5 |"),
        ]
        assert tracker.points["Result/slowdown", 4] == 3.0
        assert tracker.points["Result/ratio", 1] == 0.75
        assert tracker.points["reference/sjf", 0] == 4.0

    def test_a_trial_that_failed_says_why(self, folder):
        tracker = Noting()
        callback = SweepCallback(folder, tracker, MagicMock())
        trial = SimpleNamespace(trial_id="x", config={"trial": {"index": 0, "settings": {}}})
        callback.failures["x"] = ValueError("no such slot")
        callback.on_trial_error(0, [], trial)
        callback.close()
        assert tracker.notes[-1].endswith("iterations, failed: ValueError: no such slot.")


class TestHalving:
    def scheduler(self, sweep) -> Halving:
        data = sweep.to_dict() | {"search": "asha", "asha": {"grace": 1, "reduction": 3}}
        return Halving(parse_section(Sweep, data), 27)

    def test_it_decides_at_rungs_where_the_metric_is_new(self, sweep):
        scheduler = self.scheduler(sweep)
        for index in range(4):
            trial = SimpleNamespace(trial_id="x", config={"trial": {"index": index}})
            scheduler.on_trial_add(None, trial)
        for index, score in enumerate([1.0, 1.1, 1.2]):
            told(scheduler, index, 1, score)
        assert told(scheduler, 3, 1, 9.0, scored=False) == "CONTINUE"
        assert told(scheduler, 3, 1, 9.0) == "STOP"

    def test_replayed_trials_weigh_as_they_did(self, sweep):
        scheduler = self.scheduler(sweep)
        for index, score in enumerate([1.0, 1.1, 1.2]):
            scheduler.replay(index, rows(1, 2, score), "eval/ratio", 1)
        trial = SimpleNamespace(trial_id="x", config={"trial": {"index": 3}})
        scheduler.on_trial_add(None, trial)
        assert told(scheduler, 3, 1, 9.0) == "STOP"
        scheduler.on_trial_add(None, SimpleNamespace(config={"trial": {"index": 0}}))
        assert told(scheduler, 0, 2, 1.0) == "CONTINUE"

    @pytest.mark.parametrize(("score", "decision"), [(4.9, "CONTINUE"), (5.1, "STOP")])
    def test_replayed_trials_weigh_by_the_mean_of_their_newest_values(self, sweep, score, decision):
        scheduler = self.scheduler(sweep)
        noisy = [*rows(1, 1, 1.0), *rows(2, 2, 9.0), *rows(3, 3, 1.0)]
        for index in range(3):
            scheduler.replay(index, noisy, "eval/ratio", 2)
        scheduler.on_trial_add(None, SimpleNamespace(config={"trial": {"index": 3}}))
        assert told(scheduler, 3, 1, 0.5) == "CONTINUE"
        assert told(scheduler, 3, 3, score) == decision  # the others had (9 + 1) / 2


class TestEvolution:
    def test_a_trial_keeps_its_index_and_stays_in_range(self, sweep):
        space = {
            "training.lr": {"log_uniform": [1e-3, 1e-2]},
            "training.epochs": {"integer": [1, 4]},
        }
        data = sweep.to_dict() | {"search": "pbt", "trials": 2, "space": space}
        evolution = Evolution(parse_section(Sweep, data), 2)
        settings = {"training.lr": 1e-2, "training.epochs": 4}
        donor = SimpleNamespace(config={"trial": {"index": 0, "settings": settings}})
        taker = SimpleNamespace(config={"trial": {"index": 1, "settings": {}}})
        for _ in range(20):
            config, _ = evolution._get_new_config(taker, donor)
            assert config["trial"]["index"] == 1
            new = config["trial"]["settings"]
            assert 1e-3 <= new["training.lr"] <= 1e-2
            assert new["training.epochs"] in (1, 2, 3, 4)

    def test_a_trial_that_is_tried_again_evolves_when_it_would_have(self, sweep):
        space = {"training.lr": {"log_uniform": [1e-3, 1e-2]}}
        data = sweep.to_dict() | {"search": "pbt", "trials": 2, "space": space}
        evolution = Evolution(parse_section(Sweep, data), 2)
        trial = MagicMock(config={"trial": {"index": 0, "settings": {}}})
        trial.run_metadata.checkpoint_manager.checkpoint_config.num_to_keep = None
        controller = SimpleNamespace(search_alg=None)
        evolution.on_trial_add(controller, trial)
        evolution._trial_state[trial].last_perturbation_time = 10
        evolution.on_trial_error(controller, trial)
        evolution.on_trial_add(controller, trial)
        assert evolution._trial_state[trial].last_perturbation_time == 10


class TestBoard:
    def table(self, interactive: bool) -> tuple[ProgressTable, io.StringIO]:
        stream = io.StringIO()
        self.now = 0.0
        table = ProgressTable(3, "eval/ratio", "min", stream, interactive, clock=lambda: self.now)
        table.refresh(now=True)
        table.put(TrialLine(0, "running", 0, 10, math.nan, "lr=1"))
        table.put(TrialLine(1, "finished", 10, 10, 0.9, "lr=2"))
        return table, stream

    def test_a_log_gets_a_line_now_and_then(self):
        table, stream = self.table(interactive=False)
        before = stream.getvalue()
        table.refresh()
        assert stream.getvalue() == before
        self.now = 11.0
        table.refresh()
        line = stream.getvalue().splitlines()[-1]
        assert line == (
            "1/3 trials over, 1 running  22 s left  best eval/ratio 0.9 of trial 001 (lr=2)"
        )

    def test_the_best_is_said_of_each_task(self):
        table, stream = self.table(interactive=False)
        table.put(TrialLine(2, "finished", 10, 10, 0.5, "objective=makespan", "makespan"))
        table.refresh(now=True)
        assert (
            stream.getvalue()
            .splitlines()[-1]
            .endswith(
                "best eval/ratio 0.5 of trial 002 (objective=makespan), 0.9 of trial 001 (lr=2)"
            )
        )

    def test_a_terminal_gets_a_table_that_is_rewritten(self):
        table, stream = self.table(interactive=True)
        table.put(TrialLine(0, "running", 5, 10, 0.8, "lr=1"))
        table.put(TrialLine(0, "running", 6, 10, math.nan, "lr=1"))
        self.now = 1.0
        table.refresh()
        shown = stream.getvalue().rpartition("\x1b[J")[2].splitlines()
        assert [line.split()[:2] for line in shown[2:]] == [["000", "6/10"], ["001", "10/10"]]
        assert "0.8" in shown[2]


class TestFigure:
    def table(self, tmp_path, num: int = 5):
        fixed = dict.fromkeys(FIXED_COLUMNS, 0) | {"sweep": "s", "metric": "m", "mode": "min"}
        found = [
            fixed
            | {"best": int(k == min(1, num - 1))}
            | {"trial": k, "status": "finished" if k else "stopped", "score": 1.0 + k}
            | {"training.lr": 10.0**-k, "task.objective": ["slowdown", "makespan"][k % 2]}
            for k in range(num)
        ]
        write_table(tmp_path / "sweep.csv", found)
        return tmp_path / "sweep.csv"

    def test_it_names_settings_and_the_best_of_those_that_finished(self, tmp_path):
        figure = sweep_figure.draw(self.table(tmp_path))
        shown = " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(Text))
        assert "trial 001 with 2" in shown
        assert "4 finished" in shown
        for name in ("lr", "objective", "slowdown", "makespan"):
            assert name in shown

    def test_one_trial_can_be_drawn_and_none_is_refused(self, tmp_path):
        assert sweep_figure.draw(self.table(tmp_path, 1))
        request = SimpleNamespace(runs=[])
        with pytest.raises(InputError, match="--runs SWEEP_DIR"):
            sweep_figure.collect(request)


def test_a_trials_file_that_is_broken_is_named(tmp_path):
    TrialFile(Point(1, {"training.lr": 0.1}), "running").write(tmp_path)
    assert TrialFile.read(tmp_path) == TrialFile(Point(1, {"training.lr": 0.1}), "running")
    (tmp_path / "trial.json").write_text("{")
    with pytest.raises(InputError, match=r"trial\.json"):
        TrialFile.read(tmp_path)
