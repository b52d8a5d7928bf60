"""What a comparison says of each learned policy, in a sentence for notes and summaries."""

from collections.abc import Mapping, Sequence
from typing import Any

from cluster_env.evaluation import get_metric
from tune_jobs.measuring.policy_specs import learned_name
from tune_jobs.measuring.table import blocks_of, few_windows, interval_of, times_of
from tune_jobs.measuring.wording import best_of, compared, number_in, on_jobs, spec_of_row
from tune_jobs.tables.columns import column

Cells = Mapping[str, Any]
"""A row of `tune_jobs.measuring.comparison.compare`, or of its CSV file."""

_PRICE = ("utilization", "wait", "longest_wait")


def verdicts(rows: Sequence[Cells]) -> list[str]:
    """A sentence for each learned policy at each place: beside the best of all rules there.

    There is none without a rule to compare with, or where a log has too few windows for a ranking.
    """
    sentences = []
    for block in blocks_of(rows):
        heuristics = [row for row in block if not _holds(row, "learned")]
        if heuristics and not few_windows(block[0]):
            sentences += [
                beside_heuristics(
                    f"{learned_name(str(row['key']))} {on_jobs(row)}",
                    row,
                    heuristics,
                    str(row["metric"]),
                )
                for row in block
                if _holds(row, "learned")
            ]
    return sentences


def beside_heuristics(name: str, row: Cells, heuristics: Sequence[Cells], metric: str) -> str:
    """What a policy achieves beside the best of some rules, with the price of both.

    Args:
        name: of the policy, and what else is said of it.
        row: its numbers.
        heuristics: those of the heuristics, each with its name (``policy``).
        metric: that decides.
    """
    rank = get_metric(metric).rank
    rule = min(heuristics, key=lambda one: rank(number_in(one[metric])))
    value, best = (number_in(one[metric]) for one in (row, rule))
    time, _ = times_of(spec_of_row(row))

    def written(one: Cells, column_name: str) -> str:
        return column(column_name).write(number_in(one[column_name]), time)

    price = ", ".join(
        f"{column(side).title} {written(row, side)} ({written(rule, side)})"
        for side in _PRICE
        if side in row and side != metric
    )
    names = [str(one.get("key") or one["policy"]) for one in heuristics]
    return (
        f"{name} has a {column(metric).title} of {interval_of(row, metric)}, "
        f"{compared(value, best)} {rule['policy']} with {written(rule, metric)}, "
        f"{best_of(names)}{_paired(row, rule)}; {price}."
    )


def _paired(row: Cells, rule: Cells) -> str:
    """The paired difference of both, where one of them has the best mean of all policies."""
    other = next((one for one, best in ((rule, row), (row, rule)) if _holds(best, "best")), None)
    if other is None:
        return ""
    level = number_in(other["difference_low"]) <= 0 <= number_in(other["difference_high"])
    difference = interval_of(other, "difference")
    return f" (paired difference {difference}{', not significant' if level else ''})"


def _holds(row: Cells, name: str) -> bool:
    return str(row.get(name)) == "True"
