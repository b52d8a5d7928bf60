"""How a policy does on jobsets that training never sees, while it trains."""

from collections.abc import Mapping, Sequence

from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.evaluation import by_size, evaluate
from cluster_env.evaluation.rollouts import concatenate
from cluster_env.evaluation.summary import flat_summary
from cluster_env.task import Task
from cluster_env.worlds import get_heuristic
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.measuring.table import beside
from tune_jobs.measuring.wording import jobs_of
from tune_jobs.measuring.work import Work
from tune_jobs.processes.pieces import Spread
from tune_jobs.processes.spreading import here

RATIO = "eval/ratio"
"""Metric of a run's objective over that of the best heuristic."""


LEAST_JOBSETS = 16
"""Of a part that is evaluated by itself; fewer at a time take longer for each."""


class Validation:
    """The validation jobsets of a run, and the policies evaluated on them.

    Args:
        config: of the run.

    Attributes:
        metric: name of the metric that counts here.
        higher_is_better: whether a larger one is better.
        headline: name of the metric that the world is known by.
        side_metrics: metrics that stand beside it: first those that a guard limits.
        summaries: all metrics of the heuristics by name; empty before `references`.
    """

    def __init__(self, config: ExperimentConfig) -> None:
        self._task = config.task.build(config.name, config.seed)
        self._metric = self._task.objective.metric
        self.metric = self._metric.name
        self.higher_is_better = self._metric.higher_is_better
        spec = self._task.spec
        self.headline = spec.headline
        known = {
            "world": self._task.world.kind,
            "metric": self.metric,
            **dict.fromkeys(spec.metrics),
        }
        self.side_metrics = tuple(
            dict.fromkeys((*spec.side_metrics, *(beside(known) if spec.side_metrics else ())))
        )
        self.summaries: dict[str, dict[str, float]] = {}
        self._jobsets = self._task.jobsets(Split.VALIDATION, range(config.evaluation.jobsets))

    def evaluate(
        self, policies: Sequence[Policy], spread: Spread = here, parts: int = 1
    ) -> list[dict[str, float]]:
        """Metrics of each policy; see `cluster_env.evaluation.summary.flat_summary`.

        Args:
            policies: what is evaluated.
            spread: what evaluates a policy on a part of the jobsets each.
            parts: how many of them; only speed depends on it.
        """
        count = len(self._jobsets)
        size = max(LEAST_JOBSETS, -(-count // parts))
        starts = range(0, count, size)
        pieces = [(k, range(s, min(s + size, count))) for k in range(len(policies)) for s in starts]
        # Others draw the jobsets themselves, which is quicker than to send them.
        known = self._jobsets if spread is here else None
        shared = self._task, policies, known
        found = list(Work(spread).measure(_evaluate_part, shared, pieces))
        schedules = [
            concatenate(found[k : k + len(starts)]) for k in range(0, len(found), len(starts))
        ]
        return [flat_summary(each, self._task.world, [self.metric]) for each in schedules]

    def references(self, spread: Spread = here, parts: int = 1) -> dict[str, float]:
        """The metric that counts here, for the heuristics that a policy has to beat, untuned."""
        names = self._task.spec.baselines
        policies = [get_heuristic(name, self._task.world) for name in names]
        self.summaries = dict(zip(names, self.evaluate(policies, spread, parts), strict=True))
        return {name: summary[self.metric] for name, summary in self.summaries.items()}

    def side_metrics_of(self, evaluation: Mapping[str, float]) -> str:
        """What an evaluation cost and whom: the metrics that guards limit, the headline by size.

        It is empty in a world without such metrics.
        """
        spec = self._task.spec
        paid = (f"{name.replace('_', ' ')} {evaluation[name]:.3g}" for name in spec.side_metrics)
        sizes = by_size(spec.headline, spec.metrics) if spec.side_metrics else []
        whom = (
            f"{name.removeprefix(f'{spec.headline}_')} {evaluation[name]:.3g}" for name in sizes
        )
        parts = [", ".join(paid)]
        if sizes:
            parts.append(f"{spec.headline.replace('_', ' ')} by size: {', '.join(whom)}")
        return "; ".join(part for part in parts if part)

    def describe(self, references: dict[str, float]) -> str:
        """One sentence that says what there is to beat."""
        values = ", ".join(f"{name} {value:.3g}" for name, value in references.items())
        label = self._metric.label.replace("steps", self._task.spec.presentation.time_unit)
        return (
            f"{label} of the heuristics, {jobs_of(self._task, Split.VALIDATION)}, "
            f"{len(self._jobsets)} validation jobsets: {values}"
        )


def _evaluate_part(
    shared: tuple[Task, Sequence[Policy], Sequence[JobSet] | None], piece: tuple[int, range]
) -> Schedule:
    """A policy on some of the validation jobsets: a piece of work, see `Spread`."""
    task, policies, known = shared
    policy, places = piece
    if known is None:
        jobsets = task.jobsets(Split.VALIDATION, places)
    else:
        jobsets = list(known[places.start : places.stop])
    return evaluate(
        policies[policy],
        jobsets,
        task.world,
        run_seed=task.seed,
        first_position=places.start,
    )
