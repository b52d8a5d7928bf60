"""Policies on the same jobsets: differences, win rates, and tuned heuristics."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.evaluation import (
    PolicyGroup,
    Result,
    best,
    choose,
    compare_policies,
    rank_on,
    tune,
    tuned_numbers,
    win_rate,
)
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from tests.cluster_env.evaluation.measured import JOBSETS, WORLD, heuristic, summary


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    specs = ("random", "sjf", "packer")
    groups = [PolicyGroup(spec, (heuristic(spec),)) for spec in specs]
    return {result.name: result for result in compare_policies(groups, JOBSETS, WORLD)}


def test_best_follows_the_direction_of_the_metric(results: dict[str, Result]) -> None:
    ordered = list(results.values())
    assert best(ordered, "slowdown").name == "sjf"
    assert best(ordered, "utilization").name in ("sjf", "packer")
    assert best(ordered, "utilization").mean("utilization") == max(
        result.mean("utilization") for result in ordered
    )


def test_difference_is_that_of_the_means(results: dict[str, Result]) -> None:
    sjf, packer = results["sjf"], results["packer"]
    difference = sjf.difference(packer, "slowdown")
    assert difference.value == pytest.approx(sjf.mean("slowdown") - packer.mean("slowdown"))
    assert difference.high < 0
    assert sjf.difference(sjf, "slowdown").high == 0


def test_several_seeds_give_an_interval_over_both_levels(results: dict[str, Result]) -> None:
    sjf, packer = results["sjf"].members[0], results["packer"].members[0]
    group = Result("two seeds", (sjf, packer))
    estimate = group.estimate("slowdown")
    assert estimate.over == "seeds and jobsets"
    assert estimate.value == pytest.approx((sjf.mean("slowdown") + packer.mean("slowdown")) / 2)
    assert group.difference(results["random"], "slowdown").over == "seeds and jobsets"
    middle = (sjf.mean("makespan") + packer.mean("makespan")) / 2
    assert group.means["makespan"] == pytest.approx(middle)


def test_win_rate_counts_ties_and_is_one_against_oneself() -> None:
    sjf = summary("sjf")
    assert win_rate(sjf, [sjf]).value == 1.0
    assert win_rate(sjf, [sjf, summary("packer")]).value > 0.9
    assert win_rate(summary("random"), [sjf]).value < 0.1


def test_win_rate_is_the_share_of_jobsets_at_or_below_the_best_baseline() -> None:
    own, baselines = summary("tetris:0.01"), [summary("sjf"), summary("packer")]
    bar = np.minimum(*(baseline.rows("slowdown") for baseline in baselines))
    share = np.mean(own.rows("slowdown") <= bar + 1e-9)
    estimate = win_rate(own, baselines)
    assert estimate.value == share
    assert estimate.low < share < estimate.high


def test_unfinished_jobsets_are_lost_by_policy_and_baseline() -> None:
    sjf = summary("sjf")
    unfinished = sjf.num_unfinished.copy()
    unfinished[:15] = 1
    cut = replace(sjf, num_unfinished=unfinished)
    assert win_rate(cut, [sjf]).value == 45 / 60
    better = replace(cut, totals={**sjf.totals, "slowdown": sjf.totals["slowdown"] / 2})
    assert win_rate(sjf, [better]).value == 15 / 60


def test_tuning_finds_the_best_number_of_the_sweep() -> None:
    tuned = tune("hold", JOBSETS, WORLD)
    means = {k: summary(f"hold:{k}").mean("slowdown") for k in tuned_numbers("hold", WORLD)}
    number = min(means, key=lambda k: means[k])
    assert tuned.spec == f"hold:{number}"
    assert tuned.name == f"hold*({number})"
    assert tuned.policy.name == tuned.spec


def test_tuning_follows_the_metric() -> None:
    by_slowdown = tune("tetris", JOBSETS, WORLD).spec
    by_makespan = tune("tetris", JOBSETS, WORLD, metric="makespan").spec
    assert by_slowdown in ("tetris:0.0005", "tetris:0.001", "tetris:0.002")
    assert by_makespan != by_slowdown


def test_tuning_is_done_in_the_world_that_is_measured() -> None:
    """Where episodes are cut early, a rule that waits longer looks better than it is."""
    cut = DeepRM(max_time=55)
    chosen = tune("hold", JOBSETS, cut)
    groups = [
        PolicyGroup(number, (get_heuristic(f"hold:{number}", cut),))
        for number in tuned_numbers("hold", cut)
    ]
    found = {each.name: each.mean("slowdown") for each in compare_policies(groups, JOBSETS, cut)}
    assert chosen.spec == f"hold:{min(found, key=lambda number: found[number])}"
    assert chosen.spec != tune("hold", JOBSETS, WORLD).spec


def test_only_heuristics_with_a_number_are_tuned() -> None:
    with pytest.raises(InputError, match="'sjf' has no parameter to tune; tetris and hold have"):
        tune("sjf", JOBSETS, WORLD)


def test_choosing_takes_the_best_mean_and_the_first_of_equals() -> None:
    policies = {name: heuristic(name) for name in ("random", "packer", "sjf")}
    score = rank_on(JOBSETS, WORLD)
    assert choose(policies, score) == "sjf"
    twice = {"first": policies["sjf"], "second": policies["sjf"]}
    assert choose(twice, score) == "first"
    assert choose({"none": float("nan"), "large": 9.0, "small": 2.0}, float) == "small"
