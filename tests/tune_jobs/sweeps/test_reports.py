"""What people are told of a sweep: failures, notes, the table on screen, the figure."""

import io
import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from matplotlib.text import Text

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import parse_section
from tests.tune_jobs.sweeps.trial_records import finish, record_of, rows
from tune_jobs.figures import sweep as sweep_figure
from tune_jobs.sweeps.callback import SweepCallback, describe_error
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import create_sweep
from tune_jobs.sweeps.points import list_points
from tune_jobs.sweeps.progress_table import ProgressTable
from tune_jobs.sweeps.results import FIXED_COLUMNS
from tune_jobs.tables.frames import write_table
from tune_jobs.tracking import NullTracker


class TestFailures:
    def test_each_is_said_in_true_words(self):
        from ray.exceptions import ActorDiedError, RayTaskError

        failed = RayTaskError("step", "traceback", ValueError("no\nnumber"))
        assert describe_error(failed) == "ValueError: no number"
        assert describe_error(RuntimeError("x")) == "RuntimeError: x"
        assert describe_error(ActorDiedError()).startswith("its process died")
        assert "NoneType" not in describe_error(None)


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


@dataclass
class Trial:
    """What Ray Tune shows of a trial."""

    settings: dict
    pickled_error_file: Path | None = None

    @property
    def config(self) -> dict:
        return {"settings": self.settings}

    def __str__(self) -> str:
        return "trial-000"


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
        trial = Trial(list_points(folder.sweep)[0].settings)
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

    def test_what_heuristics_reach_is_recorded_also_where_a_killed_sweep_goes_on(self, folder):
        trial = Trial(list_points(folder.sweep)[0].settings)
        lost = SweepCallback(folder, NullTracker(), MagicMock())
        lost.on_trial_result(0, [], trial, self.report(1))
        lost.close()
        tracker = Noting()
        callback = SweepCallback(folder, tracker, MagicMock())
        callback.on_trial_result(0, [], trial, self.report(2))
        callback.close()
        assert tracker.points["reference/sjf", 0] == 4.0

    def test_a_curve_with_a_hole_has_a_word(self, folder):
        table = MagicMock()
        callback = SweepCallback(folder, NullTracker(), table)
        trial = Trial(list_points(folder.sweep)[0].settings)
        callback.on_trial_result(0, [], trial, self.report(1))
        callback.on_trial_result(0, [], trial, self.report(2))
        assert table.say.mock_calls == []
        callback.on_trial_result(0, [], trial, self.report(4))
        callback.close()
        table.say.assert_called_once_with(
            "trial 000 has no iteration 3 of its own: it went on from another trial's state"
        )

    def test_a_trial_that_is_tried_again_does_not_run_meanwhile(self, folder, tmp_path):
        table = ProgressTable(3, "eval/ratio", "min", stream := io.StringIO(), False)
        callback = SweepCallback(folder, NullTracker(), table)
        trial = Trial(list_points(folder.sweep)[0].settings, tmp_path / "error.pkl")
        trial.pickled_error_file.write_bytes(pickle.dumps(ValueError("gone")))
        callback.on_trial_start(0, [], trial)
        assert "1 running" in table.headline()
        callback.on_trial_recover(0, [], trial)
        assert "running" not in table.headline()
        assert "trial 000 is tried again: ValueError: gone" in stream.getvalue()
        callback.on_trial_start(0, [], trial)
        assert "1 running" in table.headline()
        callback.close()

    def test_a_trial_that_failed_says_why(self, folder, tmp_path):
        tracker = Noting()
        callback = SweepCallback(folder, tracker, MagicMock())
        trial = Trial({}, tmp_path / "error.pkl")
        trial.pickled_error_file.write_bytes(pickle.dumps(ValueError("no such slot")))
        callback.on_trial_error(0, [], trial)
        callback.close()
        assert tracker.notes[-1].endswith("iterations, failed: ValueError: no such slot.")


class TestTable:
    @pytest.fixture(params=[False, True], ids=["log", "terminal"])
    def shown(self, request, folder):
        """A table of two trials, one of them over; its stream, and what sets the clock."""
        stream, now = io.StringIO(), [0.0]
        table = ProgressTable(3, "eval/ratio", "min", stream, request.param, lambda: now[0])
        table.refresh(now=True)
        table.put(record_of(folder, 0))
        finish(folder, 1, 0.9)
        table.put(folder.started()[1])
        return table, stream, now

    @pytest.mark.parametrize("shown", [False], indirect=True)
    def test_a_log_gets_a_line_now_and_then(self, shown):
        table, stream, now = shown
        before = stream.getvalue()
        table.refresh()
        assert stream.getvalue() == before
        now[0] = 11.0
        table.refresh()
        line = stream.getvalue().splitlines()[-1]
        assert line == (
            "1/3 trials over, 1 running  22 s left  best eval/ratio 0.9 of trial 001 (lr=0.01)"
        )

    @pytest.mark.parametrize("shown", [False], indirect=True)
    def test_the_best_is_said_of_each_task(self, shown, sweep, tmp_path):
        table, stream, _ = shown
        space = {"task.objective": {"grid": ["slowdown", "makespan", "utilization"]}}
        other = create_sweep(parse_section(Sweep, sweep.to_dict() | {"space": space}), tmp_path)
        finish(other, 2, 0.5)
        table.put(other.started()[0])
        table.refresh(now=True)
        ratios = "0.5 of trial 002 (objective=utilization), 0.9 of trial 001 (lr=0.01)"
        assert stream.getvalue().splitlines()[-1].endswith(f"best eval/ratio {ratios}")
        other.unlock()

    @pytest.mark.parametrize("shown", [True], indirect=True)
    def test_a_terminal_gets_a_table_that_is_rewritten(self, shown, folder):
        table, stream, now = shown
        record = record_of(folder, 0)
        record.add(rows(1, 2, 0.8), None, 1.0)
        record.add([{"iteration": 3.0}], None, 1.0)
        table.put(record)
        now[0] = 1.0
        table.refresh()
        text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", stream.getvalue()).splitlines()
        assert text[-4].startswith("1/3 trials over, 1 running")
        assert [line.split()[:3] for line in text[-2:]] == [
            *(["000", "3/4", "0.8"], ["001", "4/4", "0.9"])
        ]
        table.say("a line that stays")
        table.close()
        assert "a line that stays" in stream.getvalue()


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
        assert "trial 001 with 2, is" in shown
        assert "4 finished" in shown
        for name in ("lr", "objective", "slowdown", "makespan"):
            assert name in shown

    def test_one_trial_can_be_drawn_and_none_is_refused(self, tmp_path):
        figure = sweep_figure.draw(self.table(tmp_path, 1))
        shown = " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(Text))
        assert "trial 000 with 1 (stopped after 0 iterations)" in shown
        request = SimpleNamespace(runs=[])
        with pytest.raises(InputError, match="--runs SWEEP_DIR"):
            sweep_figure.collect(request)
