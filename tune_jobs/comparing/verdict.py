"""What a comparison says of each learned policy, in a sentence for notes and summaries."""

from collections.abc import Mapping, Sequence
from typing import Any

from cluster_env.evaluation import get_metric
from tune_jobs.comparing.policy_specs import learned_name
from tune_jobs.comparing.table import blocks_of, few_windows, interval_of, times_of
from tune_jobs.comparing.wording import best_of, compared, number_in, on_jobs, spec_of_row
from tune_jobs.tables.columns import column

Cells = Mapping[str, Any]
"""A row of `tune_jobs.comparing.comparison.compare`, or of its CSV file."""

_PRICE = ("utilization", "wait", "longest_wait")


def verdicts(rows: Sequence[Cells]) -> list[str]:
    """A sentence for each learned policy at each place: beside the best of all rules there.

    There is none without a rule to compare with, or where a log has too few windows for a ranking.
    """
    sentences = []
    for block in blocks_of(rows):
        rules = [row for row in block if not _holds(row, "learned")]
        if rules and not few_windows(block[0]):
            sentences += [_verdict(row, rules) for row in block if _holds(row, "learned")]
    return sentences


def _verdict(row: Cells, rules: Sequence[Cells]) -> str:
    metric, rank = str(row["metric"]), get_metric(str(row["metric"])).rank
    rule = min(rules, key=lambda one: rank(number_in(one[metric])))
    value, best = (number_in(one[metric]) for one in (row, rule))
    time, _ = times_of(spec_of_row(row))

    def written(name: str, one: Cells) -> str:
        return column(name).write(number_in(one[name]), time)

    price = ", ".join(
        f"{column(name).title} {written(name, row)} ({written(name, rule)})"
        for name in _PRICE
        if name in row and name != metric
    )
    return (
        f"{learned_name(str(row['key']))} has a {column(metric).title} of "
        f"{interval_of(row, metric)} {on_jobs(row)}, {compared(value, best)} {rule['policy']} with "
        f"{written(metric, rule)}, {best_of([str(one['key']) for one in rules])}"
        f"{_chance(row, rule)}; {price}."
    )


def _chance(row: Cells, rule: Cells) -> str:
    """Says so where the paired difference to the best mean of all is not significant."""
    other = rule if _holds(row, "best") else row if _holds(rule, "best") else None
    if other is None:
        return ""
    level = number_in(other["difference_low"]) <= 0 <= number_in(other["difference_high"])
    return ", which is not significant" if level else ""


def _holds(row: Cells, name: str) -> bool:
    return str(row[name]) == "True"
