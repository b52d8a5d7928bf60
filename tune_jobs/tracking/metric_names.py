"""Every metric that a run records, with its unit and its meaning.

The names are those of ``metrics.csv`` and of MLflow, where the step is the iteration. They stay
what they are: a metric that comes to mean something else gets another name.
"""

from dataclasses import dataclass

from cluster_env.core.errors import InputError
from cluster_env.evaluation.metrics import METRICS

EVALUATION = "eval/"
REFERENCE = "reference/"


@dataclass(frozen=True)
class MetricName:
    """One metric of a run.

    Attributes:
        name: as it is recorded.
        unit: what it counts in; empty for a share or a ratio.
        meaning: one sentence without its full stop.
    """

    name: str
    unit: str
    meaning: str


TRAINING = (
    MetricName("train/return_mean", "reward", "mean return of the iteration's training episodes"),
    MetricName("train/return_max", "reward", "best return of each jobset, mean over jobsets"),
    MetricName("train/slowdown", "", "mean slowdown of the jobs in training episodes"),
    MetricName("train/unfinished_jobs", "jobs", "jobs that had not finished when episodes ended"),
    MetricName("train/decisions_per_episode", "decisions", "mean length of an episode"),
    MetricName("train/entropy", "nats", "mean entropy of the policy over decisions"),
    MetricName("train/critic_loss", "", "mean squared error of the critic, on its own scale"),
    MetricName("train/gradient_norm", "", "length of the gradient that updates were made with"),
    MetricName("train/skipped_updates", "updates", "updates left out, gradient not finite"),
    MetricName("meta/return_before", "", "value before adaptation, in units of a heuristic's"),
    MetricName("meta/return_after", "", "the same after adaptation"),
    MetricName("meta/gain", "", "what adaptation gains: return_after minus return_before"),
    MetricName("meta/slowdown_before", "", "mean slowdown before adaptation"),
    MetricName("meta/inner_norm", "", "mean length of the way that inner steps went"),
    MetricName("meta/entropy_coefficient", "", "bonus for entropy, which follows a target"),
    MetricName("meta/collapsed", "", "1 if the run went back to its best weights, else 0"),
    MetricName("time/iteration_s", "s", "an iteration, evaluation apart"),
    MetricName("time/sample_s", "s", "its sampling, until all episodes are gathered"),
    MetricName("time/runner_s", "s", "longest time that one runner was at it"),
    MetricName("time/adapt_s", "s", "longest time that one runner spent on inner steps"),
    MetricName("time/learn_s", "s", "advantages and updates"),
    MetricName("time/decisions_per_s", "decisions/s", "decisions over the time of the iteration"),
    MetricName("workers/healthy", "runners", "runners that answered; 0 if sampling is done here"),
    MetricName("workers/restarts", "restarts", "runners that were replaced since the start"),
    MetricName("total/decisions", "decisions", "decisions since the start of the run"),
    MetricName("total/episodes", "episodes", "episodes since the start of the run"),
)  # fmt: skip

OF_SLOWDOWN = (
    MetricName("slowdown_low", "", "lower end of the mean slowdown's 95 % interval over jobsets"),
    MetricName("slowdown_high", "", "upper end of it"),
    MetricName("slowdown_p95", "", "slowdown that 95 % of the jobs are at or below"),
    MetricName("unfinished", "jobs", "jobs that had not finished when their episode ended"),
    MetricName("num_jobs", "jobs", "jobs of the validation jobsets"),
    MetricName(
        "ratio", "", "metric of the run's objective over the best heuristic's; below 1 is better"
    ),
)


def metric_names() -> list[MetricName]:
    """All of them, in the order of the table; what is measured of a schedule, under ``eval/``."""
    measured = [
        MetricName(name, _unit(metric.label), metric.label.partition(" (")[0])
        for name in METRICS.names()
        for metric in [METRICS.get(name)]
    ]
    evaluation = [
        MetricName(f"{EVALUATION}{one.name}", one.unit, one.meaning)
        for one in (*measured, *OF_SLOWDOWN)
    ]
    return [
        *TRAINING,
        *evaluation,
        MetricName(
            f"{REFERENCE}<heuristic>", "", "the metric that validation ranks by, of a heuristic"
        ),
    ]


def explain(name: str) -> MetricName:
    """What a recorded metric means.

    An objective of the run's own, ``eval/class_slowdown(0.1, 1)`` or a mixture, is measured under
    its own name.

    Raises:
        InputError: if no run records such a metric.
    """
    known = {one.name: one for one in metric_names()}
    if name in known:
        return known[name]
    if name.startswith(REFERENCE):
        return known[f"{REFERENCE}<heuristic>"]
    if name.startswith(EVALUATION) and any(sign in name for sign in "(+ "):
        return MetricName(name, "", "cost of the run's own objective")
    raise InputError(
        f"no run records a metric {name}; tune_jobs/README.md lists those that one does"
    )


def metric_table() -> str:
    """The table of `metric_names` in Markdown."""
    lines = ["| Metric | Unit | Meaning |", "| --- | --- | --- |"]
    lines += [f"| `{one.name}` | {one.unit} | {one.meaning} |" for one in metric_names()]
    return "\n".join(lines)


def _unit(label: str) -> str:
    return label.partition(" (")[2].removesuffix(")")
