"""What MLflow shows of a run first."""

from types import SimpleNamespace
from typing import Any

import pytest

from tune_jobs.runs.describing import describe, headline
from tune_jobs.runs.training import _Loop


def trainer(evaluation: dict[str, float], *, higher_is_better: bool = False) -> Any:
    summaries = {
        "sjf": {"slowdown": 4.0, "utilization": 0.5, "longest_wait": 9.0},
        "tetris": {"slowdown": 5.0, "utilization": 0.6, "longest_wait": 8.0},
    }
    return SimpleNamespace(
        config=SimpleNamespace(training=SimpleNamespace(iterations=20)),
        validation=SimpleNamespace(
            metric="slowdown",
            side_metrics=("utilization", "longest_wait", "unknown here"),
            higher_is_better=higher_is_better,
            summaries=summaries,
            describe=lambda references: f"slowdown of {', '.join(references)}",
        ),
        references={name: row["slowdown"] for name, row in summaries.items()},
        evaluation=evaluation,
        evaluated=10,
        done=12,
    )


EVALUATION = {
    "slowdown": 3.0,
    "slowdown_low": 2.5,
    "slowdown_high": 3.5,
    "small": 1.0,
    "utilization": 0.25,
    "longest_wait": 30.0,
}


def test_the_description_says_the_result_in_words_and_with_its_price() -> None:
    words, _, rest = describe(trainer(EVALUATION), "stopped by a signal").partition("\n\n")
    assert words == (
        "**Validation slowdown 3** [2.5, 3.5] after iteration 10; sjf, the best of sjf and "
        "tetris, has 4: 25.0% less. 12 of 20 iterations, stopped by a signal."
    )
    assert rest.splitlines()[:5] == [
        "| policy | slowdown | utilization | longest_wait |",
        "| :-- | --: | --: | --: |",
        "| this run | 3 | 0.25 | 30 |",
        "| sjf | 4 | 0.5 | 9 |",
        "| tetris | 5 | 0.6 | 8 |",
    ]


def test_the_best_heuristic_is_the_largest_where_more_is_better() -> None:
    assert "tetris, the best of sjf and tetris, has 5: 40.0% less" in describe(
        trainer(EVALUATION, higher_is_better=True), "finished"
    )


def test_the_line_of_an_iteration_begins_with_the_policy_beside_the_best_rule() -> None:
    """A narrow terminal cuts off the end."""
    shown = trainer(EVALUATION)
    shown.validation.headline = "slowdown"
    row = {"train/return_mean": -5.0, "train/slowdown": 9.0}
    line = _Loop._line(SimpleNamespace(_trainer=shown), row)  # type: ignore[arg-type]
    assert line == "validation slowdown 3 (sjf 4)  reward -5.0  slowdown 9.00"


def test_before_the_first_evaluation_it_says_what_there_is_to_beat() -> None:
    assert describe(trainer({}), "in training") == (
        "12 of 20 iterations, in training. There is no evaluation yet. slowdown of sjf, tetris."
    )


@pytest.mark.parametrize("others", [{}, {"train/slowdown": 3.0}])
def test_an_iteration_without_an_evaluation_has_no_headline(others: dict[str, float]) -> None:
    assert headline(others, "slowdown", ("utilization",)) == {}


def test_the_headline_sorts_before_all_other_metrics() -> None:
    row = {"eval/makespan": 9.87654, "eval/ratio": 1.23456, "eval/utilization": 0.5, "A/b": 1.0}
    found = headline(row, "makespan", ("utilization", "wait"))
    assert found == {"Result/makespan": 9.877, "Result/ratio": 1.235, "Result/utilization": 0.5}
    names = [name for name in (*row, *found) if name != "A/b"]
    assert sorted(names)[: len(found)] == sorted(found)
