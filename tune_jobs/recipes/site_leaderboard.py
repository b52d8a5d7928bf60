"""The leaderboard of ``sites``: each policy over three references, made of what was measured."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.evaluation.intervals import CONFIDENCE
from tune_jobs.recipes.site_units import REFERENCE
from tune_jobs.tables.frames import Row, Value

ALL = "all busy logs"
"""What stands for a log in the rows over logs; all logs, where none is busy."""

OVER = ("best", "fixed", "past")
"""What policies are compared with: the log's best rule in hindsight, `REFERENCE`, and the rule that
was best in the earlier half of a log, by the weeks of the later half alone."""

PRICES = ("mean_wait", "wait_95", "longest_wait", "user_slowdown", "bounded_slowdown_wide")
"""Numbers over those of a log's best rule."""

Ends = tuple[float, float, float]
"""A mean, and the ends of its interval."""


def leaderboard(rows: pd.DataFrame, weeks: pd.DataFrame, rules: Collection[str]) -> list[Row]:
    """A row for each log and policy, then one for each policy over all logs.

    ``over_best``, ``over_fixed`` and ``over_past`` are geometric means over weeks of ratios of mean
    bounded slowdowns, with 95 % intervals: ``_low`` and ``_high`` with weeks as units, over logs
    also ``_logs_low`` and ``_logs_high`` with logs as units. Intervals are Student's, those of one
    log over its best rule bootstrapped. ``points`` is the difference in utilization in points, and
    `PRICES` are ratios, both to the best rule. ``rank`` is one more than the number of policies
    whose whole intervals over weeks lie below: ties have intervals that overlap. Who lacks a log
    has none.

    Args:
        rows: of the table ``sites``.
        weeks: weekly mean bounded slowdowns, a column for each policy.
        rules: names of what the past may choose.
    """
    of_logs = [row for log in rows["log"].unique() for row in _of_log(log, rows, weeks, rules)]
    frame = pd.DataFrame(of_logs)
    busy = frame[frame["kind"] == "busy"] if (frame["kind"] == "busy").any() else frame
    over = [_over_logs(str(name), own) for name, own in busy.groupby("policy", sort=False)]
    num_logs = busy["log"].nunique()
    whole = [one for one in over if one["logs"] == num_logs]
    for one in over:
        below = sum(other["over_best_high"] < one["over_best_low"] for other in whole)
        one["rank"] = below + 1 if one["logs"] == num_logs else np.nan
    over.sort(key=lambda one: (np.nan_to_num(one["rank"], nan=np.inf), one["over_best"]))
    return [{"table": "sites-leaderboard", **row} for row in [*of_logs, *over]]


def _of_log(
    log: str, rows: pd.DataFrame, weeks: pd.DataFrame, rules: Collection[str]
) -> Iterator[dict[str, Value]]:
    own = rows[rows["log"] == log].set_index("policy")
    filled = weeks[(weeks["log"] == log) & (weeks["jobs"] > 0)]
    logs: Mapping[str, NDArray[np.float64]] = {
        name: np.log(filled[name].to_numpy(float)) for name in own.index
    }
    week = weeks.loc[weeks["log"] == log, "week"].to_numpy(float)
    later = filled["week"].to_numpy(float) > week.max() // 2
    earlier = ~later if (~later).any() else later  # of a log of one week
    known = [name for name in own.index if name in rules]
    past = min(known, key=lambda name: float(logs[name][earlier].mean()))
    best = own.loc[own["best_rule"].iloc[0]]
    for name, row in own.iterrows():
        ends: dict[str, Ends] = {
            "best": (row["ratio"], row["ratio_low"], row["ratio_high"]),
            "fixed": _student(logs[str(name)] - logs[REFERENCE]),
            "past": _student((logs[str(name)] - logs[past])[later]),
        }
        yield {
            **{"log": log, "kind": row["kind"], "policy": str(name), "past_rule": past},
            **{key: value for one in OVER for key, value in _cells(f"over_{one}", ends[one])},
            "points": 100 * (row["utilization"] - best["utilization"]),
            **{price: _ratio(row[price], best[price]) for price in PRICES},
        }


def _over_logs(policy: str, own: pd.DataFrame) -> dict[str, Any]:
    cells: dict[str, Any] = {"log": ALL, "policy": policy, "logs": len(own)}
    for one in OVER:
        ends = np.log(own[[f"over_{one}", f"over_{one}_low", f"over_{one}_high"]].to_numpy(float))
        mean = ends[:, 0].mean()
        below, above = np.sqrt(((ends[:, 1:] - ends[:, :1]) ** 2).sum(axis=0)) / len(own)
        value, low, high = np.exp([mean, mean - below, mean + above]).tolist()
        cells |= dict(_cells(f"over_{one}", (value, low, high)))
        _, low, high = _student(ends[:, 0])
        cells |= {f"over_{one}_logs_low": low, f"over_{one}_logs_high": high}
    # A wait of 0, of any of both, has no ratio.
    prices = own[list(PRICES)].astype(float).where(lambda ratios: ratios > 0)
    means = np.exp(np.log(prices).mean())
    return cells | {"points": float(own["points"].mean())} | {k: float(means[k]) for k in PRICES}


def _cells(name: str, ends: Ends) -> Iterator[tuple[str, float]]:
    return zip((name, f"{name}_low", f"{name}_high"), ends, strict=True)


def _student(logarithms: NDArray[np.float64]) -> Ends:
    """The geometric mean of ratios, from their logarithms, with its 95 % interval."""
    mean = float(logarithms.mean()) if logarithms.size else np.nan
    if logarithms.size < 2:
        return float(np.exp(mean)), np.nan, np.nan
    error = float(logarithms.std(ddof=1)) / np.sqrt(logarithms.size)
    from scipy import stats  # takes half a second, so not for those who only read a plan

    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, logarithms.size - 1)) * error
    return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half))


def _ratio(value: float, other: float) -> float:
    return float(value / other) if other > 0 else np.nan
