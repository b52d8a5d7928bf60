"""The guard: whom it lets decide, and why."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from cluster_env.core.metric import utilization
from cluster_env.core.policy import Policy
from cluster_env.core.spec import spec_of
from cluster_env.evaluation import (
    MIN_DISJOINT,
    GuardDecision,
    Judge,
    PolicyGroup,
    compare_policies,
    evaluate,
)
from cluster_env.evaluation.guard import told_apart
from tests.cluster_env.evaluation.measured import JOBSETS, WORLD, Idle, heuristic, summary


def groups(*specs: str) -> list[PolicyGroup]:
    return [PolicyGroup(f"{spec}!", (heuristic(spec),)) for spec in specs]


class Guard:
    """A judge with the heuristics and the policies that it judges, on calibration jobsets."""

    def __init__(
        self,
        baselines: Sequence[PolicyGroup],
        *,
        others: Sequence[PolicyGroup] = (),
        limits: Mapping[str, float] = spec_of(WORLD).side_metrics,
        metric: str = "slowdown",
        jobsets: int = 60,
        reference: str = "",
        num_disjoint: int | None = None,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self._evaluate = partial(compare_policies, jobsets=JOBSETS[:jobsets], world=WORLD)
        first, rest = self._evaluate(baselines), self._evaluate(others)
        self._judge = Judge(
            first,
            rest,
            limits=limits,
            metric=metric,
            reference=next((one for one in [*first, *rest] if one.name == reference), None),
            num_disjoint=num_disjoint,
            refused=refused,
        )
        self.heuristic = [*baselines, *others][self._judge.best]
        self.reference = self._judge.reference

    def decide(self, policy: Policy, name: str | None = None) -> GuardDecision:
        (learned,) = self._evaluate([PolicyGroup(name or policy.name, (policy,))])
        return self._judge.decide(learned, policy, self.heuristic)


def guard(*specs: str, metric: str = "slowdown", jobsets: int = 60) -> Guard:
    """One without side metrics."""
    return Guard(groups(*specs), jobsets=jobsets, metric=metric, limits={})


def test_a_bad_policy_gives_way_to_the_best_heuristic() -> None:
    decision = guard("packer", "sjf").decide(heuristic("random"))
    assert not decision.learned_is_used
    assert (decision.name, decision.chosen) == ("sjf!", heuristic("sjf"))
    assert "random is" in decision.reason
    assert "higher than that of sjf!, the best heuristic" in decision.reason


def test_a_good_policy_is_used() -> None:
    policy = heuristic("hold:8")
    decision = guard("packer", "sjf").decide(policy, "clever")
    assert decision.learned_is_used
    assert (decision.name, decision.chosen) == ("clever", policy)
    assert "the mean slowdown of clever is" in decision.reason
    assert "lower than that of sjf!" in decision.reason
    assert decision.candidates[-1].difference.high < 0


def test_a_policy_that_cannot_be_told_from_the_best_is_not_used() -> None:
    close = guard("hold:8").decide(heuristic("hold:9"))
    assert close.candidates[-1].difference.value != 0
    assert not close.learned_is_used
    assert "is not significantly different from that of hold:8!" in close.reason
    same = guard("sjf").decide(heuristic("tetris:0"))
    assert not same.learned_is_used
    one = guard("sjf", jobsets=1).decide(heuristic("hold:8"))
    assert not one.learned_is_used  # a single jobset proves nothing


def test_a_policy_that_leaves_jobs_waiting_is_not_used() -> None:
    decision = guard("sjf", metric="utilization").decide(Idle())
    assert not decision.learned_is_used
    jobs = sum(jobset.num_jobs for jobset in JOBSETS)
    assert decision.reason == (f"idle left {jobs:,} jobs unfinished, sjf!, the best heuristic, 0")


def test_a_heuristic_that_leaves_jobs_waiting_is_not_the_best() -> None:
    baselines = [PolicyGroup("idle", (Idle(),)), PolicyGroup("sjf", (heuristic("sjf"),))]
    assert Guard(baselines, metric="makespan").heuristic.name == "sjf"


def test_more_is_better_where_the_metric_says_so() -> None:
    at_hand = guard("hold:8", metric="utilization")
    assert at_hand.decide(heuristic("packer")).learned_is_used
    assert not guard("packer", metric="utilization").decide(heuristic("hold:8")).learned_is_used


def test_the_table_holds_means_and_paired_differences() -> None:
    decision = guard("packer", "sjf").decide(heuristic("hold:8"))
    assert [candidate.name for candidate in decision.candidates] == ["sjf!", "packer!", "hold:8"]
    for candidate, spec in zip(decision.candidates, ("sjf", "packer", "hold:8"), strict=True):
        mean = evaluate(heuristic(spec), JOBSETS, WORLD).slowdown.mean()
        assert candidate.mean.value == pytest.approx(mean)
        gap = mean - decision.candidates[0].mean.value
        assert candidate.difference.value == pytest.approx(gap)
        assert candidate.num_unfinished == 0
    assert decision.seconds > 0


def test_a_better_mean_that_costs_too_much_is_refused_with_its_price() -> None:
    dear = heuristic("hold:8")
    decision = Guard(groups("packer", "sjf")).decide(dear, "dear")
    assert not decision.learned_is_used
    assert decision.reference == "sjf!"
    assert decision.limits == {"utilization": 0.1, "wait": 0.25, "longest_wait": 1.0}
    assert "lower than that of sjf!" in decision.reason
    sjf, learned = (evaluate(heuristic(spec), JOBSETS, WORLD) for spec in ("sjf", "hold:8"))
    used = [utilization(schedule).mean() for schedule in (learned, sjf)]
    assert used[0] < 0.9 * used[1]
    assert (
        f"but its mean utilization in the arrival window of {used[0]:.3g} is more than 10% below "
        f"the {used[1]:.3g} of sjf!" in decision.reason
    )
    price = decision.candidates[-1].side_metrics
    assert price["wait"] == pytest.approx((learned.start - learned.arrival).mean())


@pytest.mark.parametrize(
    ("metric", "limit", "used"),
    [("utilization", 0.3, False), ("utilization", 0.4, True), ("wait", 0.1, False)],
)
def test_a_limit_says_how_much_worse_a_price_may_be(metric: str, limit: float, used: bool) -> None:
    limits = {metric: limit}
    judge = Guard(groups("packer", "sjf"), limits=limits)
    assert judge.decide(heuristic("hold:8")).learned_is_used is used


def test_a_price_keeps_its_limit_with_the_whole_interval() -> None:
    sjf, hold = summary("sjf"), summary("hold:8")
    share = hold.mean("wait") / sjf.mean("wait") - 1  # by which it waits longer on these jobsets

    def judged(limit: float) -> GuardDecision:
        limits = {"wait": limit}
        judge = Guard(groups("sjf"), others=groups("hold:8"), limits=limits)
        assert judge.reference == "sjf!"
        return judge.decide(heuristic("hold:8"), "clever")

    kept = judged(2 * share)
    assert (kept.name, kept.candidates[-1].too_dear) == ("hold:8!", "")
    close = judged(1.001 * share)  # others of these jobsets would have broken it
    assert (close.name, close.learned_is_used) == ("sjf!", False)
    assert re.search(
        r"its mean wait of [\d.]+ may be \d+% above the [\d.]+ of sjf!, which is more than \d+%",
        close.reason,
    )
    alone = Guard(groups("sjf"), jobsets=1, others=groups("hold:8"))
    assert alone.heuristic.name == "sjf!"  # of one jobset nobody can say


def test_a_heuristic_that_is_too_dear_is_not_the_best() -> None:
    others = groups("hold:8")
    free = Guard(groups("sjf"), others=others, limits={})
    assert free.heuristic.name == "hold:8!"
    strict = Guard(groups("sjf"), others=others)
    assert (strict.heuristic.name, strict.reference) == ("sjf!", "sjf!")
    hold, sjf, _ = strict.decide(heuristic("tetris:0")).candidates
    assert (hold.name, sjf.name, sjf.too_dear) == ("hold:8!", "sjf!", "")
    assert "mean utilization" in hold.too_dear


def test_windows_of_a_short_log_prove_nothing() -> None:
    """The same jobsets prove a gain where they are drawn, or where the log has room for many."""

    def decided(num_disjoint: int | None) -> GuardDecision:
        known = {"metric": "slowdown", "limits": {}, "num_disjoint": num_disjoint}
        judge = Guard(groups("packer", "sjf"), **known)
        return judge.decide(heuristic("hold:8"))

    short, long, drawn = (decided(held) for held in (MIN_DISJOINT - 1, 30, None))
    assert long.learned_is_used
    assert drawn.learned_is_used
    assert not short.learned_is_used
    assert short.reason == (
        "the log has room for 4 windows without overlap, and fewer than 5 prove nothing; a log 1.3 "
        "times as long, or windows of 80% of their length, would suffice"
    )
    assert "of a log with room for 30 windows without overlap)" in long.reason
    assert [one.num_disjoint for one in (short, long, drawn)] == [4, 30, None]
    gaps = [one.candidates[-1].difference for one in (short, long, drawn)]
    assert len({gap.value for gap in gaps}) == 1
    assert gaps[0].high - gaps[0].low > gaps[1].high - gaps[1].low > gaps[2].high - gaps[2].low


def test_side_metrics_are_compared_with_a_given_reference_or_the_best_baseline() -> None:
    """Beside a reference that idles the machine, idling would look cheap."""
    limits = {"utilization": 0.1}
    usual = Guard(groups("hold:8"), others=groups("sjf"), limits=limits)
    assert (usual.reference, usual.heuristic.name) == ("hold:8!", "hold:8!")
    judges = [
        Guard(groups("packer", "sjf"), others=groups("hold:8"), limits=limits),
        Guard(groups("hold:8"), others=groups("sjf"), limits=limits, reference="sjf!"),
    ]
    for judge in judges:
        assert (judge.reference, judge.heuristic.name) == ("sjf!", "sjf!")
        assert judge.decide(heuristic("hold:9")).candidates[-1].too_dear.endswith("of sjf!")


def test_what_is_refused_for_another_reason_is_not_used() -> None:
    """Such as waits that build up over months, and are in no window."""
    free = Guard(groups("packer", "sjf"), limits={})
    assert free.heuristic.name == "sjf!"
    judge = Guard(groups("packer", "sjf"), limits={}, refused={"sjf!": "its queue grows"})
    assert (judge.heuristic.name, judge.reference) == ("sjf!", "sjf!")  # the reference is used
    held = Guard(groups("packer"), others=groups("sjf"), limits={}, refused={"sjf!": "it starves"})
    assert (held.heuristic.name, held.reference) == ("packer!", "packer!")
    (learned,) = compare_policies([PolicyGroup("sjf", (heuristic("sjf"),))], JOBSETS, WORLD)
    decide = partial(held._judge.decide, learned, heuristic("sjf"), held.heuristic)
    assert decide().learned_is_used
    decision = decide("it starves users")
    assert not decision.learned_is_used
    assert decision.reason.endswith(", but it starves users")
    assert [one.too_dear for one in decision.candidates] == ["it starves", "", "it starves users"]


@pytest.mark.parametrize(
    ("shares", "shown"),
    [
        ((0.31, 0.25), ("31%", "25%")),
        ((0.2523, 0.25), ("25.2%", "25.0%")),
        ((0.2504, 0.25), ("25.04%", "25.00%")),
    ],
)
def test_what_is_beyond_a_limit_never_looks_like_the_limit(
    shares: tuple[float, float], shown: tuple[str, str]
) -> None:
    assert told_apart(*shares) == shown
