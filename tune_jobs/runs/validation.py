"""How a policy does on jobsets that training never sees, while it trains."""

from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate_summary, objective_metric
from cluster_env.worlds import get_heuristic
from rllib_configs.schema import ExperimentConfig
from tune_jobs.comparing.table import beside
from tune_jobs.comparing.wording import jobs_of

RATIO = "eval/ratio"
"""Metric of a run's objective over that of the best heuristic."""


class Validation:
    """The validation jobsets of a run, and the policies evaluated on them.

    Args:
        config: of the run.

    Attributes:
        metric: name of the metric that counts here.
        higher_is_better: whether a larger one is better.
        price: metrics that stand beside it: first those that a guard limits.
        summaries: all metrics of the heuristics by name; empty before `references`.
    """

    def __init__(self, config: ExperimentConfig) -> None:
        self._task = config.task.build(config.name, config.seed)
        self._metric = objective_metric(self._task.objective)
        self.metric = self._metric.name
        self.higher_is_better = self._metric.higher_is_better
        kind = self._task.kind
        known = {"world": self._task.world.kind, "metric": self.metric, **dict.fromkeys(kind.metrics)}
        self.price = tuple(dict.fromkeys((*kind.price, *(beside(known) if kind.price else ()))))
        self.summaries: dict[str, dict[str, float]] = {}
        self._jobsets = self._task.jobsets(Split.VALIDATION, range(config.evaluation.jobsets))

    def evaluate(self, policy: Policy) -> dict[str, float]:
        """Metrics of a policy; see `cluster_env.evaluation.evaluate_summary`."""
        return evaluate_summary(
            policy,
            self._jobsets,
            self._task.world,
            run_seed=self._task.seed,
            also=[self.metric],
        )

    def references(self) -> dict[str, float]:
        """The metric that counts here, for the heuristics that a policy has to beat, untuned."""
        self.summaries = {
            name: self.evaluate(get_heuristic(name, self._task.world))
            for name in self._task.kind.baselines
        }
        return {name: summary[self.metric] for name, summary in self.summaries.items()}

    def describe(self, references: dict[str, float]) -> str:
        """One sentence that says what there is to beat."""
        values = ", ".join(f"{name} {value:.3g}" for name, value in references.items())
        return (
            f"{self._metric.label} of the heuristics, {jobs_of(self._task, Split.VALIDATION)}, "
            f"{len(self._jobsets)} validation jobsets: {values}"
        )
