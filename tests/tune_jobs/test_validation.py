"""What a policy is validated by while it trains."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cluster_env.worlds import get_heuristic
from rllib_configs.config.loading import load_config
from tune_jobs.runs.validation import Validation


@pytest.mark.parametrize(
    ("objective", "metric", "label"),
    [
        ("makespan", "makespan", "mean makespan (steps)"),
        ("fair_slowdown", "fair_slowdown", "mean fair slowdown"),
        ("{slowdown: 1, makespan: 0.5}", "1 slowdown + 0.5 makespan", "mean cost of an episode"),
    ],
)
def test_the_metric_is_that_of_the_objective(objective: str, metric: str, label: str) -> None:
    validation = Validation(load_config("deeprm-smoke", [f"task.objective={objective}"]))
    references = validation.references()
    assert validation.metric == metric
    assert label in validation.describe(references)
    assert references["sjf"] > 1


def test_a_mixture_is_what_its_parts_are_for_each_jobset() -> None:
    config = load_config("deeprm-smoke", ["task.objective={utilization: 2, makespan: 1}"])
    window = config.task.workload.window
    makespan, utilization = (
        Validation(load_config("deeprm-smoke", [f"task.objective={part}"])).references()
        for part in ("makespan", "utilization")
    )
    for name, value in Validation(config).references().items():
        assert value == pytest.approx(makespan[name] - 2 * window * utilization[name])


@pytest.mark.parametrize(
    ("preset", "sizes"),
    [
        ("deeprm-smoke", {"slowdown_small", "slowdown_large", "largest_slowdown"}),
        ("hpc-smoke", {f"bounded_slowdown_{size}" for size in ("narrow", "medium", "wide")}),
    ],
)
def test_all_side_metrics_stand_beside_what_counts(preset: str, sizes: set[str]) -> None:
    validation = Validation(load_config(preset, ["evaluation.jobsets=1"]))
    validation.references()
    always = {"utilization", "utilization_to_end", "completion_time"}
    always |= {"wait", "longest_wait", "makespan"}
    assert set(validation.side_metrics) == always | sizes
    assert set(validation.side_metrics) <= set(next(iter(validation.summaries.values())))


def test_a_run_says_what_an_evaluation_costs_and_whom() -> None:
    validation = Validation(load_config("hpc-smoke", ["evaluation.jobsets=2"]))
    validation.references()
    found = validation.summaries["saf"]
    assert validation.side_metrics_of(found) == (
        f"utilization {found['utilization']:.3g}, wait {found['wait']:.3g}, "
        f"longest wait {found['longest_wait']:.3g}; bounded slowdown by size: "
        f"narrow {found['bounded_slowdown_narrow']:.3g}, "
        f"medium {found['bounded_slowdown_medium']:.3g}, "
        f"wide {found['bounded_slowdown_wide']:.3g}"
    )
    plain = Validation(load_config("accrual-smoke", ["evaluation.jobsets=1"]))
    plain.references()
    assert plain.side_metrics_of(next(iter(plain.summaries.values()))) == ""


def test_parts_of_the_jobsets_come_to_the_same_numbers() -> None:
    def spread(function: Callable[..., Any], shared: Any, pieces: Sequence[Any]) -> list[Any]:
        asked.extend(piece for _, piece in pieces)
        return [function(shared, piece) for piece in pieces]

    asked: list[Any] = []
    config = load_config("deeprm-smoke", ["evaluation.jobsets=40"])
    validation = Validation(config)
    policies = [get_heuristic(name, config.task.world) for name in ("random", "sjf")]
    assert validation.evaluate(policies, spread, parts=8) == validation.evaluate(policies)
    assert asked[3:] == [(1, range(16)), (1, range(16, 32)), (1, range(32, 40))]
