"""Contenders in foreseeing run times: who is measured on what, and the picture."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.forecasting.past import asked
from meta.run_times import learning
from tests.tune_jobs.drawing import texts
from tests.tune_jobs.test_sites import write_log
from tune_jobs.figures import registry
from tune_jobs.figures import run_times as picture
from tune_jobs.figures.registry import make_figure
from tune_jobs.recipes import run_times
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import read_frame

LEARNED = ("joint", "joint, 3 steps", "MAML, 3 steps")
FORMULAS = ("all jobs", "shrunk means")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, out = tmp_path_factory.mktemp("logs"), tmp_path_factory.mktemp("made")
    write_log(folder / "one.swf", 700, 1.5)
    write_log(folder / "two.swf", 500, 1.0)
    (folder / "notes.txt").write_text("no log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "num_local_cpus", lambda: 1)
        patch.setattr(run_times, "SEEDS", range(2))
        patch.setattr(learning, "_STEPS", 40)
        patch.setattr(learning, "_MAML_STEPS", 3)
        make_figure("run-times", FigureRequest(traces=[folder]), out)
    return out / "run-times.csv"


def test_each_log_has_losses_and_schedules_of_all(made: Path) -> None:
    rows = read_frame(made, run_times.TEXTS, run_times.NUMBERS)
    assert set(rows["log"]) == {"one", "two", run_times.ALL}
    over, rows = rows[rows["log"] == run_times.ALL], rows[rows["log"] != run_times.ALL]
    base = over[(over["contender"] == run_times.BASE) & (over["policy"] == "")]
    assert not base["excess"].any()
    losses = rows[(rows["policy"] == "") & (rows["seen"] == "all")]
    assert losses.groupby("contender").size().to_dict() == {
        **dict.fromkeys(FORMULAS, 2),
        **dict.fromkeys(LEARNED, 4),
    }
    one = rows[(rows["log"] == "one") & (rows["contender"] == "all jobs") & (rows["policy"] == "")]
    assert dict(zip(one["seen"], one["jobs"], strict=True)) == {
        **{"all": 700, "0": 30, "30": 70, "100": 200, "300": 400},
        "shift": 350,
    }
    # All users of these logs ask for three times what they take: that is soon foreseen.
    late = losses.groupby("contender")["loss"].mean()
    assert late["joint"] < late["all jobs"] + 0.1


def test_what_users_ask_for_is_the_unit_and_others_are_played(made: Path) -> None:
    rows = read_frame(made, run_times.TEXTS, run_times.NUMBERS)
    played = rows[rows["policy"] == "sjf:easy"]
    assert set(played["contender"]) == {*FORMULAS, *LEARNED, run_times.TRUE}
    over, played = (played[(played["log"] == run_times.ALL) == which] for which in (True, False))
    means = np.log(played["ratio"]).groupby([played["contender"], played["log"]]).mean()
    means = np.exp(means.groupby("contender").mean())
    assert over.set_index("contender")["ratio"].to_dict() == pytest.approx(
        means.to_dict(), rel=1e-3
    )
    numbers = ["ratio", "bounded_slowdown", "mean_wait", "longest_wait", "to_end"]
    assert np.isfinite(played[numbers]).all(axis=None)
    assert played["ratio"].nunique() > 2


def test_schedules_by_estimates_are_no_better_than_themselves(tmp_path: Path) -> None:
    log = run_times._log(write_log(tmp_path / "one.swf", 300, 1.5))
    estimates = asked(log.jobs)
    base = run_times._weekly(log, estimates)
    for row in run_times._worth(log, estimates, base):
        assert row["ratio"] == 1
    schedule = base["sjf:easy"][0]
    slowdown = (schedule.start - schedule.arrival + log.jobs.duration) / log.jobs.duration
    week = schedule.arrival // (7 * 24 * 3600)
    means = [np.log(slowdown[week == one].mean()) for one in (0, 1)]
    assert base["sjf:easy"][1] == pytest.approx(means)


def test_the_picture_says_what_it_rests_on(made: Path) -> None:
    shown = texts(picture.draw(made))
    assert "2 logs" in shown
    assert "MAML, 3 steps" in shown


def test_a_single_log_teaches_nothing_about_another(tmp_path: Path) -> None:
    write_log(tmp_path / "one.swf", 200, 1.0)
    with pytest.raises(InputError, match="name two or more"):
        run_times.collect(FigureRequest(traces=[tmp_path]))
