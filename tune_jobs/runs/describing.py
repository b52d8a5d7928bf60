"""What MLflow shows of a run first: its headline as metrics, its result as a description."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tune_jobs.measuring.wording import best_of, compared
from tune_jobs.runs.validation import RATIO
from tune_jobs.tables.printing import markdown

if TYPE_CHECKING:
    from tune_jobs.runs.trainer import Trainer

HEADLINE = "Result"
"""Group of the metrics that say how a run does. MLflow sorts groups by name, capitals first."""

TITLE = "Result"


def headline(
    row: Mapping[str, float], metric: str, side_metrics: Iterable[str]
) -> dict[str, float]:
    """The metrics of an evaluation that come first: what counts, what it beats, and a side metric.

    There are three, so that they fit beside preset and load, and are one row of charts.

    Args:
        row: metrics of an iteration.
        metric: name of the one that counts.
        side_metrics: names of those that stand beside it in every table; the first is shown here
            too.

    Returns:
        Four digits of each, for a table; empty without an evaluation.
    """
    if f"eval/{metric}" not in row:
        return {}
    first = [f"eval/{name}" for name in list(side_metrics)[:1]]
    names = dict.fromkeys((f"eval/{metric}", RATIO, *first))
    short = {name: f"{HEADLINE}/{name.removeprefix('eval/')}" for name in names if name in row}
    return {short[name]: float(f"{row[name]:.4g}") for name in short}


def describe(trainer: "Trainer", state: str) -> str:
    """The result of a run so far: in words, and as a table beside the heuristics.

    Args:
        trainer: what trains.
        state: what has become of the run, such as ``finished``.

    Returns:
        Markdown.
    """
    total = trainer.config.training.iterations
    progress = f"{trainer.done} of {total} iterations, {state}."
    words = trainer.validation.describe(trainer.references)
    if not trainer.evaluation:
        return f"{progress} There is no evaluation yet. {words}."
    return f"{_verdict(trainer)} {progress}\n\n{_table(trainer)}\n\n{words}."


def best_reference(trainer: "Trainer") -> tuple[str, float]:
    """The best of the heuristics to beat, and its metric; the first of equals."""
    choose = max if trainer.validation.higher_is_better else min
    return choose(trainer.references.items(), key=lambda one: one[1])


def _verdict(trainer: "Trainer") -> str:
    validation, evaluation = trainer.validation, trainer.evaluation
    metric, value = validation.metric, evaluation[validation.metric]
    best, reference = best_reference(trainer)
    low, high = (evaluation.get(f"{metric}_{end}") for end in ("low", "high"))
    interval = "" if low is None or high is None else f" [{low:.4g}, {high:.4g}]"
    against = f"{best}, {best_of([*trainer.references])}, has {reference:.4g}"
    if reference and value != reference:
        against += f": {compared(value, reference).removesuffix(' than')}"
    return (
        f"**Validation {metric} {value:.4g}**{interval} after iteration {trainer.evaluated}; "
        f"{against}."
    )


def _table(trainer: "Trainer") -> str:
    validation = trainer.validation
    rows = {"this run": trainer.evaluation, **validation.summaries}
    named = dict.fromkeys((validation.metric, *validation.side_metrics, "unfinished"))
    names = [name for name in named if all(name in row for row in rows.values())]
    lines = [["policy", *names]]
    lines += [[who, *(f"{row[name]:.4g}" for name in names)] for who, row in rows.items()]
    return markdown(lines)
