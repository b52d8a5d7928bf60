"""What a sweep keeps of its trials, and which of them it calls the best."""

import io
import json
import math

import pytest
from matplotlib.text import Text

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import load_config, parse_section
from tests.tune_jobs.sweeps.trial_records import finish, record_of, rows, state_of
from tune_jobs.figures import sweep as sweep_figure
from tune_jobs.runs.trainer import cost_ratio
from tune_jobs.sweeps import launching
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import TrialFile, create_sweep, open_sweep, trial_name, unpack
from tune_jobs.sweeps.points import Point
from tune_jobs.sweeps.results import best_trials, table_of, write_results
from tune_jobs.sweeps.sweeping import SweepResult
from tune_jobs.tables.frames import write_table


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
        found = record.rewind()
        assert found is not None
        assert found.iteration == 3
        assert len(record.run.history.rows()) == 3
        assert (found.path / "policy" / "weights.pt").read_text() == "three"
        record.run.unlock()

    def test_a_sweep_is_read_back_and_half_made_trials_are_made_anew(self, folder, tmp_path):
        (folder.trials / trial_name(1)).mkdir()
        (folder.trials / trial_name(1) / "config.yaml").write_text("half")
        record = record_of(folder, 0)
        record.add(rows(1, 4, 5.0), state_of(tmp_path, "a"), 1.0)
        record.settle("finished")
        again = open_sweep(folder.path)
        assert again.sweep == folder.sweep
        (trial,) = again.started()
        assert (trial.file.status, trial.file.point) == ("finished", record.file.point)
        assert trial.run.policy.joinpath("weights.pt").read_text() == "a"
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
        assert best.index == 1
        table, config = write_results(folder)
        assert [line.split(",")[1:3] for line in table.read_text().splitlines()[1:]] == [
            *(["0", "finished"], ["1", "finished"], ["2", "stopped"])
        ]
        assert config == folder.path / "best.yaml"
        assert load_config(config).training.lr == 0.01
        assert "train" in config.read_text().splitlines()[2]

    def test_a_best_that_did_not_run_to_its_end_says_so(self, folder, capsys):
        record = record_of(folder, 0)
        record.add(rows(1, 2, 1.8), None, 1.0)
        record.settle("stopped")
        record.run.unlock()
        how = "lr=0.1, stopped early after 2 of 4 iterations"
        _, config = write_results(folder)
        assert how in config.read_text()
        result = SweepResult(folder, {"stopped": 1, "left": 0}, 0.5, 1.0, 1)
        launching.report(result, as_json=False)
        assert f"Best     trial 000, eval/ratio 1.8: {how}\n" in capsys.readouterr().out
        launching.report(result, as_json=True)
        (told,) = json.loads(capsys.readouterr().out)["best"]
        assert (told["status"], told["iterations"]) == ("stopped", 2)

    def test_a_sweep_of_which_nothing_is_kept_names_no_file(self, sweep, tmp_path, capsys):
        folder = create_sweep(sweep, tmp_path)
        result = SweepResult(folder, {"finished": 0, "left": 4}, 0.0, 5.0, 1, 143)
        launching.report(result, as_json=False)
        assert "Resume " in capsys.readouterr().out
        folder.discard_if_unused()
        launching.report(result, as_json=False)
        assert capsys.readouterr().out == "No trial had begun, so nothing is kept.\n"
        folder.unlock()

    def test_the_best_has_the_highest_score_where_high_is_good(self, sweep, tmp_path):
        folder = create_sweep(sweep.model_copy(update={"mode": "max"}), tmp_path)
        for index, score in enumerate([2.0, 3.0, 1.0]):
            finish(folder, index, score)
        assert [best.index for best in best_trials(folder)] == [1]
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
        assert [best.index for best in best_trials(folder)] == [0, 3]
        assert [row["best"] for row in table_of(folder)] == [1, 0, 0, 1]
        _, one, other = write_results(folder)
        assert [one.name, other.name] == ["best-slowdown.yaml", "best-makespan-1.0.yaml"]
        assert load_config(one).task.objective == "slowdown"
        folder.unlock()

        result = SweepResult(
            folder, {"finished": 4, "left": 0}, 0.5, 9.0, 1, 0, "http://mlflow:5000"
        )
        launching.report(result, False)
        shown = capsys.readouterr().out
        assert "MLflow   http://mlflow:5000\n" in shown
        assert shown.count("Best     trial 00") == 2
        assert "best-makespan-1.0.yaml" in shown
        launching.report(result, True)
        told = json.loads(capsys.readouterr().out)
        assert [each["task"]["task.objective"] for each in told["best"]] == [
            *("slowdown", {"makespan": 1.0})
        ]
        assert [each["score"] for each in told["best"]] == [2.0, 0.8]

        write_table(tmp_path / "sweep.csv", table_of(folder))
        figure = sweep_figure.draw(tmp_path / "sweep.csv")
        text = " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(Text))
        assert "The best of each task, trial 000 with 2, trial 003 with 0.8, are red" in text

    def test_a_score_is_the_mean_of_the_newest_values(self, sweep, tmp_path):
        folder = create_sweep(sweep.model_copy(update={"average": 2}), tmp_path)
        record = record_of(folder, 0)
        assert math.isnan(record.score)
        record.add([*rows(1, 3, 3.0), *rows(4, 4, 4.0), {"iteration": 5.0}], None, 1.0)
        assert (record.score, record.done) == (3.5, 5)
        record.add(rows(4, 4, 5.0), None, 1.0)  # done again, with another outcome
        assert (record.score, record.done) == (4.0, 4)
        assert folder.started()[0].score == 4.0
        folder.unlock()


def test_a_trials_file_that_is_broken_is_named(tmp_path):
    TrialFile(Point(1, {"training.lr": 0.1}), "running").write(tmp_path)
    assert TrialFile.read(tmp_path) == TrialFile(Point(1, {"training.lr": 0.1}), "running")
    (tmp_path / "trial.json").write_text("{")
    with pytest.raises(InputError, match=r"trial\.json"):
        TrialFile.read(tmp_path)
