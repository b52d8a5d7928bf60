"""How a policy does on jobsets that training never sees, while it trains."""

from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate_summary, objective_metric
from cluster_env.worlds.deeprm.heuristics import get_heuristic
from cluster_env.workloads import sample_jobsets
from rllib_configs.schema import ExperimentConfig
from tune_jobs.comparing.wording import mixture_of, on_jobs

REFERENCES = ("sjf", "tetris")


class Validation:
    """The validation jobsets of a run, and the policies evaluated on them.

    Args:
        config: of the run.

    Attributes:
        metric: name of the metric that counts here.
        higher_is_better: whether a larger one is better.
    """

    def __init__(self, config: ExperimentConfig) -> None:
        self._config = config
        self._task = config.task
        self._cluster = config.task.cluster.build()
        self._metric = objective_metric(config.task.build_objective())
        self.metric = self._metric.name
        self.higher_is_better = self._metric.higher_is_better
        self._jobsets = sample_jobsets(
            self._task.build_workload(),
            config.seed,
            Split.VALIDATION,
            range(config.evaluation.jobsets),
        )

    def evaluate(self, policy: Policy) -> dict[str, float]:
        """Metrics of a policy; see `cluster_env.evaluation.evaluate_summary`."""
        return evaluate_summary(
            policy,
            self._jobsets,
            self._cluster,
            self._task.build_rules(),
            run_seed=self._config.seed,
            max_time=self._task.max_time,
            also=[self.metric],
        )

    def references(self) -> dict[str, float]:
        """The metric that counts here, for the heuristics that a policy has to beat."""
        return {
            name: self.evaluate(get_heuristic(name, self._cluster))[self.metric]
            for name in REFERENCES
        }

    def describe(self, references: dict[str, float]) -> str:
        """One sentence that says what there is to beat."""
        values = ", ".join(f"{name} {value:.3g}" for name, value in references.items())
        workload = self._task.workload
        load = self._task.build_part(Split.VALIDATION).load
        jobs = on_jobs(load, workload.trace_name, mixture_of(workload))
        return (
            f"{self._metric.label} of the heuristics {jobs}, on "
            f"{len(self._jobsets)} validation jobsets: {values}"
        )
