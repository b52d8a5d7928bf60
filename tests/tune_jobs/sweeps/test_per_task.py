"""Sweeps over tasks compare like with like; without Ray running."""

from types import SimpleNamespace

import pytest

from cluster_env.core.errors import InputError
from tests.tune_jobs.sweeps.tiny import sweep
from tune_jobs.sweeps.searched import SETTINGS

OBJECTIVES = ["slowdown", {"slowdown": 1, "makespan": 0.5}, "makespan"]
SPACE = {
    "training.lr": {"log_uniform": [1e-4, 1e-1]},
    "task.objective": {"choice": OBJECTIVES},
}


def scheduled(space: dict, settings: list[dict], scores: list[float]) -> list[str]:
    """What ASHA decides of trials that report in turn at their first rung."""
    halving = sweep(space=space, search="asha", asha={"grace": 2, "reduction": 2})
    scheduler = halving.strategy.scheduler(halving, 8)
    trials = [
        SimpleNamespace(trial_id=str(k), config={SETTINGS: each}) for k, each in enumerate(settings)
    ]
    for trial in trials:
        scheduler.on_trial_add(None, trial)
    return [
        scheduler.on_trial_result(None, trial, {"scored_at": 2, "score": score})
        for trial, score in zip(trials, scores, strict=True)
    ]


def test_asha_stops_no_trial_for_the_score_of_another_task():
    settings = [
        {"training.lr": 0.1, "task.objective": objective}
        for objective in (OBJECTIVES[2], OBJECTIVES[2], OBJECTIVES[0], OBJECTIVES[1])
    ]
    scores = [1.01, 1.02, 1.80, 1.40]
    assert scheduled(SPACE, settings, scores) == ["CONTINUE", "STOP", "CONTINUE", "CONTINUE"]


def test_asha_compares_all_trials_of_one_task():
    space = {"training.lr": SPACE["training.lr"]}
    settings = [{"training.lr": 10.0**-k} for k in range(1, 5)]
    decisions = scheduled(space, settings, [1.01, 1.02, 0.9, 1.4])
    assert decisions == ["CONTINUE", "STOP", "CONTINUE", "STOP"]


@pytest.fixture
def search():
    """Optuna over three tasks, after four trials that are over; two of those had the first task."""
    pytest.importorskip("optuna")
    searching = sweep(space=SPACE, search="optuna", trials=12)
    scored = [
        ({"training.lr": 10.0 ** -(k + 1), "task.objective": OBJECTIVES[(0, 0, 1, 2)[k]]}, 1.0 + k)
        for k in range(4)
    ]
    return searching.strategy.searcher(searching, 7, scored)


def test_optuna_gives_tasks_equally_many_trials_and_a_study_each(search):
    suggested = [search.suggest(str(k))[SETTINGS] for k in range(8)]
    assert all(list(each) == list(SPACE) for each in suggested)  # the order of the table
    tasks = [OBJECTIVES.index(each["task.objective"]) for each in suggested]
    assert tasks == [1, 2, 0, 1, 2, 0, 1, 2]
    for k in range(8):
        search.on_trial_complete(str(k), {"score": 0.1 * k})
    values = [
        sorted(trial.value for trial in each._ot_study.trials)
        for each in search._searchers.values()
    ]
    assert values == [
        pytest.approx(sorted([1.0, 2.0, 0.2, 0.5])),
        pytest.approx(sorted([3.0, 0.0, 0.3, 0.6])),
        pytest.approx(sorted([4.0, 0.1, 0.4, 0.7])),
    ]


def test_optuna_without_tasks_has_one_study():
    pytest.importorskip("optuna")
    searching = sweep(space={"training.lr": SPACE["training.lr"]}, search="optuna", trials=3)
    search = searching.strategy.searcher(searching, 7, [])
    assert 1e-4 <= search.suggest("0")[SETTINGS]["training.lr"] <= 1e-1


def test_optuna_refuses_a_space_of_tasks_alone():
    with pytest.raises(InputError, match="optuna compares trials of one task"):
        sweep(space={"task.objective": {"choice": OBJECTIVES}}, search="optuna")
