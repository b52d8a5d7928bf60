"""Policies trained for different objectives, on each of them."""

from collections.abc import Sequence
from dataclasses import replace

from cluster_env.core.errors import InputError
from cluster_env.evaluation import METRICS, Result, best
from tune_jobs.measuring.comparison import side_cells, spec_cells
from tune_jobs.measuring.evaluating import Evaluation
from tune_jobs.measuring.policy_specs import PolicySpec, check_specs, heuristic_spec, learned_specs
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, estimate_cells

ALWAYS = ("slowdown", "completion_time")
"""Metrics that have a panel whatever the runs were trained for: the paper's two."""


def collect(request: FigureRequest) -> list[Row]:
    """Evaluates all heuristics and the runs' policies by every metric that one was trained for.

    Heuristics that take a number are tuned for each metric anew. The objective of a run that has no
    metric of its own name, such as a mixture, gets no panel; its policy is in all others.

    Returns:
        One row for each metric and policy: ``value``, its mean, over that of ``reference``, the
        best heuristic by this metric, with a 95 % interval in pairs (``ratio``); ``best`` marks the
        best of all policies by this metric, ``tied`` what cannot be told from it. Behind it stands
        what it was bought with, see `side_cells`.

    Raises:
        InputError: if a run cannot be used, or no job arrives.
    """
    runs, config = request.load()
    whole = request.protocol(config)
    protocol = whole.at(*whole.values())
    heuristics = [heuristic_spec(name) for name in protocol.task.spec.heuristics.names()]
    learned = learned_specs(runs, request.decode)
    check_specs(protocol, [*heuristics, *learned])
    objectives = [run.config.task.build_objective().name for run in runs]
    named = [name for name in objectives if name in METRICS.names()]
    metrics = list(dict.fromkeys((*ALWAYS, *named)))
    learned.sort(key=lambda one: [*metrics, one.trained_for].index(one.trained_for))
    (evaluated,) = Evaluation([protocol], learned, len(learned)).do(request.work)
    learned_results = [one.result for one in evaluated]
    places = [replace(protocol, metric=metric) for metric in metrics]
    every = Evaluation(places, heuristics, len(heuristics)).do(request.work)
    rows: list[Row] = []
    for metric, tuned, evaluations in zip(metrics, places, every, strict=True):
        results = [one.result for one in evaluations]
        head = tuned.columns()
        pairs = zip([*heuristics, *learned], [*results, *learned_results], strict=True)
        rows += [{**head, **row} for row in _rows(list(pairs), best(results, metric), tuned)]
    return rows


def _rows(
    pairs: Sequence[tuple[PolicySpec, Result]], reference: Result, protocol: EvaluationProtocol
) -> list[Row]:
    """One row for each spec; the best of them is found here."""
    metric = protocol.metric
    if not reference.means["num_jobs"]:
        raise InputError("no job arrives in these jobsets; give more with --jobsets")
    winner = best([result for _, result in pairs], metric)
    rows: list[Row] = []
    for spec, result in pairs:
        ratio, gap = result.ratio(reference, metric), result.difference(winner, metric)
        rows.append(
            {
                **spec_cells(spec, result.name),
                "num_jobs": result.means["num_jobs"],
                "unfinished": result.means["unfinished"],
                **estimate_cells("value", result.estimate(metric)),
                **estimate_cells("ratio", ratio),
                "interval_over": ratio.over,
                "reference": reference.name,
                "best": result is winner,
                "tied": result is not winner and gap.low <= 0 <= gap.high,
                **side_cells(protocol, result),
            }
        )
    return rows
