"""What MLflow shows of a trial first: how it came out, beside the heuristics, and its settings."""

import math
from collections.abc import Mapping

from cluster_env.worlds import get_spec
from rllib_configs.schema import ExperimentConfig
from tune_jobs.runs.describing import headline
from tune_jobs.runs.history import MetricRow
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import TrialFile
from tune_jobs.sweeps.results import score_of
from tune_jobs.terminal.tables import markdown


def describe_trial(
    sweep: Sweep,
    file: TrialFile,
    config: ExperimentConfig,
    rows: list[MetricRow],
    references: Mapping[str, float],
) -> str:
    """How a trial came out, in words and as a table.

    Args:
        sweep: that it belongs to.
        file: what is known of it; its error stands in the words.
        config: of it.
        rows: of its ``metrics.csv``.
        references: what heuristics reach on the same jobsets, in the metric of its objective;
            empty before they were measured.

    Returns:
        Markdown.
    """
    score, done = score_of(sweep, rows), int(rows[-1]["iteration"]) if rows else 0
    of = f", the mean of its newest {sweep.average} values" if sweep.average > 1 else ""
    result = f"**{sweep.metric} {score:.4g}**{of}. "
    if math.isnan(score):
        result = f"There is no {sweep.metric} yet. "
    settings = file.point.describe() or "no setting of its own"
    error = f": {file.error}" if file.error else ""
    words = (
        f"{result}Trial {file.point.index:03d} of the sweep {sweep.name}, {settings}: {done} of "
        f"{config.training.iterations} iterations, {file.status}{error}."
    )
    metric = _metric_of(config)
    reached = [row[f"eval/{metric}"] for row in rows if f"eval/{metric}" in row][-1:]
    if not references:
        return words
    lines = [["policy", metric]]
    lines += [["this trial", f"{value:.4g}"] for value in reached]
    lines += [[name, f"{value:.4g}"] for name, value in references.items()]
    return f"{words}\n\n{markdown(lines, names=1)}"


def first_metrics(config: ExperimentConfig, row: Mapping[str, float]) -> dict[str, float]:
    """The metrics of a trial's iteration that come first, see `headline`."""
    if not any(name.startswith("eval/") for name in row):
        return {}
    return headline(row, _metric_of(config), get_spec(config.task.world.kind).side_metrics)


def _metric_of(config: ExperimentConfig) -> str:
    return config.task.build_objective().metric.name
