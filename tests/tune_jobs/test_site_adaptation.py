"""Adaptation to the earlier half of logs: what it learns from, what is measured and drawn."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import evaluate
from cluster_env.workloads.swf import write_swf
from cluster_env.worlds import get_spec
from rllib_configs.policy_files import load_policy
from tests.tune_jobs.drawing import texts
from tests.tune_jobs.elsewhere import elsewhere
from tests.tune_jobs.test_sites import slowdowns, write_log
from tune_jobs.figures.registry import FIGURES, make_figure
from tune_jobs.figures.site_adaptation import draw
from tune_jobs.measuring.work import Work
from tune_jobs.recipes import site_adaptation
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.site_adaptation import (
    ALL,
    CHOSEN,
    NUMBERS,
    POLICY,
    SEARCHED,
    TEXTS,
    UNADAPTED,
    Site,
    best_rule,
    searched,
)
from tune_jobs.recipes.site_units import Unit
from tune_jobs.tables.frames import read_frame, write_table
from tune_jobs.terminal.files import digest

FEW = ("fcfs:easy", "sjf:easy", "saf:strict")
TINY = {"iterations": 2, "jobsets": 2, "episodes_per_jobset": 4, "validation_jobsets": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two logs of seven weeks, one of a week, and what is none."""
    path = tmp_path_factory.mktemp("logs")
    write_log(path / "one.swf.gz", 1400, 7.0)
    write_log(path / "two.swf", 1500, 7.0, processors=12)
    write_log(path / "short.swf", 200, 1.0)
    (path / "README.md").write_text("logs")
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_adaptation, "RULES", FEW)
    monkeypatch.setattr(site_adaptation, "SEARCH", {**site_adaptation.SEARCH, **TINY})
    monkeypatch.setattr(site_adaptation, "WINDOW_JOBS", 100)


def site_of(path: Path) -> Site:
    return Site("log", path, *Unit(path, digest(path), (), {"max-wait": "x2"}).task())


@pytest.fixture(scope="module")
def made(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_adaptation, "RULES", FEW)
        patch.setattr(site_adaptation, "SEARCH", {**site_adaptation.SEARCH, **TINY})
        patch.setattr(site_adaptation, "WINDOW_JOBS", 100)
        request = FigureRequest(traces=[folder], work=Work(elsewhere))
        write_table(out / "it.csv", FIGURES.get("site-adaptation").collect(request))
    return out / "it.csv"


def test_each_log_has_a_row_of_each_method_and_so_have_all(made: Path) -> None:
    rows = read_frame(made, TEXTS, NUMBERS)
    methods = [UNADAPTED, CHOSEN, SEARCHED]
    assert list(zip(rows["log"], rows["method"], strict=True)) == [
        (log, method) for log in ("one", "two", ALL) for method in methods
    ]
    own = rows[rows["log"] != ALL]
    unadapted = own[own["method"] == UNADAPTED]
    assert (unadapted[["ratio", "ratio_low", "ratio_high"]].to_numpy() == 1).all()
    together = rows[rows["log"] == ALL].set_index("method")["ratio"]
    means = own.groupby("method")["ratio"].apply(lambda ratios: np.exp(np.log(ratios).mean()))
    assert together.to_dict() == pytest.approx(means.to_dict(), rel=1e-4)


def test_the_later_weeks_alone_are_measured(folder: Path, made: Path) -> None:
    """The ratio of the chosen rule again, by hand, from whole replays."""
    site = site_of(folder / "one.swf.gz")
    assert site.later.tolist() == [4, 5, 6]
    policy, name = best_rule(site)
    jobset, world = site.jobs.jobset(), site.task.world
    schedules = [
        evaluate(one, [jobset], world)
        for one in (policy, load_policy(POLICY, "argmax", world=world)[0])
    ]
    means = [[weekly(schedule, week) for week in (4, 5, 6)] for schedule in schedules]
    rows = read_frame(made, TEXTS, NUMBERS)
    row = rows[(rows["log"] == "one") & (rows["method"] == CHOSEN)].iloc[0]
    assert row["chosen"] == name
    assert row["weeks"] == 3
    logs = np.log(means[0]) - np.log(means[1])
    assert row["ratio"] == pytest.approx(np.exp(logs.mean()), rel=1e-4)
    later = schedules[0].arrival >= 4 * 7 * 86_400
    assert row["longest_wait"] == (schedules[0].start - schedules[0].arrival)[later].max()


def weekly(schedule: Schedule, week: int) -> float:
    inside = schedule.arrival // (7 * 86_400) == week
    return float(np.array(slowdowns(schedule))[inside].mean())


def test_nothing_is_learned_from_the_later_half(folder: Path, tmp_path: Path) -> None:
    """Other run times there change neither the bound nor the rule nor a weight."""
    site = site_of(folder / "one.swf.gz")
    jobs = site.jobs
    later = jobs.submit >= jobs.submit[0] + jobs.span // 2
    columns = {
        "submit": jobs.submit,
        "run": np.where(later, 3 * jobs.run, jobs.run),
        "requested_time": jobs.estimate,
        "user": jobs.ids["user"],
        "processors": jobs.demand[:, 0],
    }
    write_swf(tmp_path / "other.swf", columns, {"MaxProcs": 16})
    other = site_of(tmp_path / "other.swf")
    assert not np.array_equal(jobs.run, other.jobs.run)
    assert other.task.world == site.task.world
    assert best_rule(other)[1] == best_rule(site)[1]
    starts = [site.play(searched(one, 0)).start for one in (site, other)]
    assert np.array_equal(*starts)
    assert not np.array_equal(starts[0], site.play(searched(site, 1)).start)


def test_what_has_too_few_weeks_is_named_and_nothing_else_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="enough weeks to adapt to"):
        make_figure("site-adaptation", FigureRequest(traces=[folder / "short.swf"]), tmp_path)
    with pytest.raises(InputError, match="name each, or a folder of them"):
        make_figure("site-adaptation", FigureRequest(), tmp_path)


def test_a_run_that_cannot_be_adapted_is_refused_at_once(folder: Path, tmp_path: Path) -> None:
    shipped = get_spec("hpc").training.policies[POLICY]
    request = FigureRequest(runs=[str(shipped)], traces=[folder])
    with pytest.raises(InputError, match="set_scorer"):
        make_figure("site-adaptation", request, tmp_path)
    assert not list(tmp_path.iterdir())


def test_it_is_drawn_from_its_table_alone(made: Path) -> None:
    words = texts(draw(made))
    for text in ("one, 3 weeks", "two, 3 weeks", f"{ALL}, 6 weeks", UNADAPTED, CHOSEN, SEARCHED):
        assert text in words.splitlines()
