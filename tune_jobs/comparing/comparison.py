"""Policies on the same unseen jobsets, place by place: the rows that tables and figures show."""

from collections.abc import Sequence

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.evaluation import (
    Estimate,
    Result,
    best,
    check_warmup,
    compare_policies,
    get_metric,
)
from tune_jobs.comparing.guarding import Guarded, calibrate
from tune_jobs.comparing.policy_specs import PolicySpec
from tune_jobs.comparing.protocol import UNSEEN, EvaluationProtocol
from tune_jobs.comparing.wording import jobs_of
from tune_jobs.terminal.progress import NoProgress, Progress
from tune_jobs.terminal.spreading import Spread, here
from tune_jobs.terminal.tables import Row, Value

WITH_INTERVAL = ("completion_time", "makespan", "utilization", "within_2")
"""Metrics with an interval beside the world's headline and its price, as far as there are any."""

_KEPT: dict[str, list[JobSet]] = {}
_NOTHING = Estimate(float("nan"), float("nan"), float("nan"), "nothing")


def compare(
    protocol: EvaluationProtocol,
    specs: Sequence[PolicySpec],
    values: Sequence[float],
    progress: Progress | None = None,
    named: Sequence[str] = (UNSEEN,),
    spread: Spread = here,
) -> list[Row]:
    """Evaluates every spec at every place, on jobsets that nobody has been trained or tuned on.

    Args:
        protocol: what to compare on.
        specs: what to compare.
        values: places on the axis of the task; see `EvaluationProtocol.values`.
        progress: shows where it is; by default nothing is shown.
        named: the jobsets to compare on at each place, see `EvaluationProtocol.on`.
        spread: what evaluates specs, a spec at a place at a time; guards decide here.

    Returns:
        One row for each value, name and spec, in this order; the columns are those of `_row`.

    Raises:
        InputError: before anything is evaluated, if a value cannot be reached, a policy is for
            another world, two specs have the same name, the warm-up leaves nothing, or there
            is nothing to guard.
    """
    progress = progress or NoProgress()
    get_metric(protocol.metric)
    places = [one for value in values for one in protocol.at(value).on(named)]
    for place in places[: len(named)]:
        check_specs(place, specs)
    num_learned = sum(spec.learned for spec in specs)
    if protocol.num_guard_jobsets and not num_learned:
        raise InputError("a guard needs a learned policy, but no run directory is named")
    lines = len(specs) + (num_learned if protocol.num_guard_jobsets else 0)
    progress.start(len(places) * lines, unit="evaluation")
    pieces = [(place, spec) for place in range(len(places)) for spec in range(len(specs))]
    found = iter(spread(evaluate_piece, (places, specs), pieces))
    rows: list[Row] = []
    for place in places:
        results = []
        for count in range(len(rows) + 1, len(rows) + 1 + len(specs)):
            results.append(next(found))
            progress.step(count, f"{jobs_of(place.task)}: {results[-1].name}")
        rows += _compare_at(place, specs, results, progress, len(rows))
    progress.close()
    return rows


def evaluate_piece(
    shared: tuple[Sequence[EvaluationProtocol], Sequence[PolicySpec]], piece: tuple[int, int]
) -> Result:
    """What a spec achieves at a place: a piece of work, see `Spread`.

    Args:
        shared: places and specs.
        piece: index of each.
    """
    places, specs = shared
    place, spec = piece
    jobsets = _held_out(places[place])
    (result,) = evaluate_specs(places[place], [specs[spec]], NoProgress(), jobsets=jobsets)
    return result


def _held_out(protocol: EvaluationProtocol) -> list[JobSet]:
    """The jobsets of a place; those of the last one are kept, because specs come one by one."""
    where = repr(protocol)
    if where not in _KEPT:
        _KEPT.clear()
        _KEPT[where] = protocol.held_out()
    return _KEPT[where]


def check_specs(protocol: EvaluationProtocol, specs: Sequence[PolicySpec]) -> None:
    """Finds out what is wrong before anything is evaluated.

    Raises:
        InputError: if two specs have the same name, a policy is for another world, or the
            warm-up leaves nothing of the arrival window.
    """
    keys = [spec.key for spec in specs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"'{twice}' is named twice; name each policy once")
    for spec in specs:
        spec.check(protocol)
    named = protocol.named
    first = protocol.held_out() if named else protocol.task.jobsets(Split.HELD_OUT, range(1))
    check_warmup(protocol.warmup, [jobset.window for jobset in first])


def evaluate_specs(
    protocol: EvaluationProtocol,
    specs: Sequence[PolicySpec],
    progress: Progress,
    num_done: int = 0,
    jobsets: Sequence[JobSet] | None = None,
) -> list[Result]:
    """What each spec achieves on the held-out jobsets of a protocol.

    Args:
        protocol: at one place of the axis; its metric is what heuristics are tuned for.
        specs: the policies.
        progress: already started; stepped once for each spec.
        num_done: steps of it that were made before.
        jobsets: the held-out ones, if they are known already.
    """
    jobsets = protocol.held_out() if jobsets is None else jobsets
    results = []
    for count, spec in enumerate(specs, start=num_done + 1):
        results += compare_policies(
            [spec.make(protocol)],
            jobsets,
            protocol.task.world,
            run_seed=protocol.task.seed,
            episodes_per_jobset=protocol.num_episodes,
            also=[protocol.metric],
            warmup=protocol.warmup,
        )
        progress.step(count, f"{jobs_of(protocol.task)}: {results[-1].name}")
    return results


def _compare_at(
    protocol: EvaluationProtocol,
    specs: Sequence[PolicySpec],
    results: Sequence[Result],
    progress: Progress,
    num_done: int,
) -> list[Row]:
    guarded = guard_at(protocol, specs, results) if protocol.num_guard_jobsets else []
    for count, line in enumerate(guarded, start=num_done + len(results) + 1):
        progress.step(count, f"{jobs_of(protocol.task)}: {line.result.name}")
    winner = best([*results, *(line.result for line in guarded)], protocol.metric)
    pairs = list(zip(specs, results, strict=True))
    baselines = [
        result
        for spec, result in pairs
        if not spec.learned and spec.key.partition(":")[0] in protocol.task.kind.baselines
    ]
    head = protocol.columns()
    rows: list[Row] = [{**head, **_row(protocol, *pair, winner, baselines)} for pair in pairs]
    for line in guarded:
        row = _row(protocol, line.spec, line.result, winner, baselines)
        rows.append({**head, **row, **line.cells()})
    return rows


def guard_at(
    protocol: EvaluationProtocol, specs: Sequence[PolicySpec], results: Sequence[Result]
) -> list[Guarded]:
    """A guarded line for each learned spec, see `calibrate`.

    Args:
        protocol: at one place of the axis; it says on how many jobsets the guard decides.
        specs: all that are compared.
        results: theirs on the held-out jobsets.
    """
    calibration = calibrate(protocol)
    name = calibration.heuristic.name
    known = [result for result in results if result.name == name]
    if not known:
        heuristic = PolicySpec(name, lambda protocol: calibration.heuristic)
        known = evaluate_specs(protocol, [heuristic], NoProgress())
    return [
        calibration.line(spec, protocol, result, known[0])
        for spec, result in zip(specs, results, strict=True)
        if spec.learned
    ]


def _row(
    protocol: EvaluationProtocol,
    spec: PolicySpec,
    result: Result,
    winner: Result,
    baselines: Sequence[Result],
) -> dict[str, Value]:
    """The columns of one spec.

    ``policy`` is the name shown and ``key`` the one that stays the same at all places. Every mean
    of `Kind.metrics` stands under its name, averaged over training seeds, with ``_low`` and
    ``_high`` its 95 % interval over ``interval_over``. ``difference`` is that to the best mean on
    the same jobsets, with its interval. ``win_rate`` is the share of jobsets at or below the best
    of the world's baselines among the specs, averaged over training seeds, with its interval.
    """
    row: dict[str, Value] = {**spec_cells(spec, result), "best": result is winner}
    row |= result.means
    metric = protocol.metric
    kind = protocol.task.kind
    for name in dict.fromkeys((kind.headline, *WITH_INTERVAL, *kind.price, metric)):
        if name in result.means:
            estimate = result.estimate(name)
            row |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
            row["interval_over"] = estimate.over
    gap = result.difference(winner, metric)
    row |= {"difference": gap.value, "difference_low": gap.low, "difference_high": gap.high}
    share = result.win_rate(baselines, metric) if baselines else _NOTHING
    row |= {"win_rate": share.value, "win_rate_low": share.low, "win_rate_high": share.high}
    return row


def spec_cells(spec: PolicySpec, result: Result) -> dict[str, Value]:
    """Who a spec is: the columns that `tune_jobs.figures` names policies by."""
    return {
        "policy": result.name,
        "key": spec.key,
        "learned": spec.learned,
        "trained_at": spec.trained_at,
        "trained_on": spec.trained_on,
        "trained_for": spec.trained_for,
        "seeds": spec.num_seeds,
    }
