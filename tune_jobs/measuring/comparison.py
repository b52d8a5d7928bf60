"""Policies on the same unseen jobsets, place by place: the rows that tables and figures show."""

from collections.abc import Sequence

from cluster_env.core.errors import InputError
from cluster_env.evaluation import Estimate, Result, best, get_metric
from tune_jobs.measuring.evaluating import estimate_of, evaluation_of, trusted
from tune_jobs.measuring.fingerprints import fingerprint_of
from tune_jobs.measuring.guarding import Guarded, guards_at, with_guard_jobs
from tune_jobs.measuring.policy_specs import PolicySpec, check_specs
from tune_jobs.measuring.protocol import UNSEEN, EvaluationProtocol
from tune_jobs.measuring.table import beside
from tune_jobs.measuring.work import Work
from tune_jobs.tables.frames import Row, Value, estimate_cells

WITH_INTERVAL = ("completion_time", "makespan", "utilization", "within_2")
"""Metrics with an interval beside the headline and the side metrics, as far as there are any."""

TABLE = "comparison"
"""What the rows say in their column ``table`` that they are."""

_NOTHING = Estimate(float("nan"), float("nan"), float("nan"), "nothing")


def compare(
    protocol: EvaluationProtocol,
    specs: Sequence[PolicySpec],
    values: Sequence[float],
    work: Work | None = None,
    named: Sequence[str] = (UNSEEN,),
) -> list[Row]:
    """Evaluates every spec at every place, on jobsets that nobody has been trained or tuned on.

    Values are places on the axis of the task, see `EvaluationProtocol.values`, and named jobsets
    those to compare on at each, see `EvaluationProtocol.on`. Places that the work has kept are not
    evaluated again.

    Returns:
        One row for each value, name and spec, in this order; the columns are those of `_row`.

    Raises:
        InputError: before anything is evaluated, if a value cannot be reached, a policy is for
            another world, two specs have the same name, the warm-up leaves nothing, or there
            is nothing to guard.
    """
    work = work or Work()
    get_metric(protocol.metric)
    guards = bool(protocol.num_guard_jobsets)
    if guards:
        protocol = with_guard_jobs(protocol, specs)
    places = [one for value in values for one in protocol.at(value).on(named)]
    for place in places[: len(named)]:
        check_specs(place, specs)
    if guards and not any(spec.learned for spec in specs):
        raise InputError("a guard needs a learned policy, but no run directory is named")
    keys = [fingerprint_of(place, specs) if work.kept.path else "" for place in places]
    missing = [place for place, key in zip(places, keys, strict=True) if key not in work.kept]
    evaluation = evaluation_of(missing, specs)
    evaluated = evaluation.do(work)
    rows: list[Row] = []
    for place, key in zip(places, keys, strict=True):
        if key in work.kept:
            rows += work.kept[key]
            continue
        at_place = next(evaluated)
        guarded = guards_at(place, evaluation, at_place) if guards else []
        results = [one.result for one in at_place[: len(specs)]]
        rows += work.kept.add(key, _rows_of_place(place, specs, results, guarded))
    next(evaluated, None)  # so that the progress ends
    return rows


def _rows_of_place(
    protocol: EvaluationProtocol,
    specs: Sequence[PolicySpec],
    results: Sequence[Result],
    guarded: Sequence[Guarded],
) -> list[Row]:
    winner = best([*results, *(line.result for line in guarded)], protocol.metric)
    pairs = list(zip(specs, results, strict=True))
    baselines = [
        result
        for spec, result in pairs
        if not spec.learned and spec.key.partition(":")[0] in protocol.task.spec.baselines
    ]
    head: Row = {"table": TABLE, **protocol.columns()}
    rows: list[Row] = [{**head, **_row(protocol, *pair, winner, baselines)} for pair in pairs]
    for line in guarded:
        row = _row(protocol, line.spec, line.result, winner, baselines)
        rows.append({**head, **row, **line.cells()})
    return rows


def _row(
    protocol: EvaluationProtocol,
    spec: PolicySpec,
    result: Result,
    winner: Result,
    baselines: Sequence[Result],
) -> dict[str, Value]:
    """The columns of one spec.

    ``policy`` is the name shown and ``key`` the one that stays the same at all places; ``told`` is
    what the policy is told of objective and limits, empty for most. Every mean
    of `WorldSpec.metrics` stands under its name, averaged over training seeds, with ``_low`` and
    ``_high`` its 95 % interval over ``interval_over``. ``difference`` is that to the best mean on
    the same jobsets, with its interval. ``win_rate`` is the share of jobsets at or below the best
    of the world's baselines among the specs, averaged over training seeds, with its interval.
    ``disjoint_windows``, of a log alone: how many jobsets fit side by side into its held-out part.
    """
    row: dict[str, Value] = {**spec_cells(spec, result.name), "told": spec.told(protocol)}
    row["best"] = result is winner
    row |= result.means
    metric, world_spec = protocol.metric, protocol.task.spec
    windows = None if protocol.named else protocol.num_disjoint_held_out
    for name in dict.fromkeys(
        (world_spec.headline, *WITH_INTERVAL, *world_spec.side_metrics, metric)
    ):
        if name in result.means:
            estimate = estimate_of(result, name, windows)
            ends = estimate_cells(name, estimate)
            row |= {**ends, name: row[name], "interval_over": estimate.over}
    gap = trusted(result.difference(winner, metric, windows), windows)
    share = trusted(result.win_rate(baselines, metric), windows) if baselines else _NOTHING
    row |= {**estimate_cells("difference", gap), **estimate_cells("win_rate", share)}
    return row if windows is None else {**row, "disjoint_windows": windows}


def side_cells(protocol: EvaluationProtocol, result: Result) -> dict[str, Value]:
    """What a policy's mean was bought with: those columns of `compare` that stand beside it."""
    head = {**protocol.columns(), "metric": protocol.task.spec.headline}
    return {name: result.means[name] for name in beside({**head, **result.means})}


def spec_cells(spec: PolicySpec, name: str) -> dict[str, Value]:
    """Who a spec is under a name: the columns that `tune_jobs.figures` names policies by."""
    return {
        "policy": name,
        "key": spec.key,
        "learned": spec.learned,
        "trained_at": spec.trained_at,
        "trained_on": spec.trained_on,
        "trained_for": spec.trained_for,
        "seeds": spec.num_seeds,
    }
