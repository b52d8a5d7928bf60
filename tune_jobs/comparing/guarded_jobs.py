"""On which jobs of a log a guard decides: as many as the policies cannot have learned from."""

from collections.abc import Sequence
from dataclasses import replace

from cluster_env.core.registry import Registry
from cluster_env.core.spec import WorkloadSpec
from cluster_env.workloads import DividedWorkload
from cluster_env.worlds import get_spec, shipped_policies
from tune_jobs.comparing.policy_specs import PolicySpec
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.trained_runs import TrainedRun


def with_guard_jobs(
    protocol: EvaluationProtocol, specs: Sequence[PolicySpec]
) -> EvaluationProtocol:
    """The protocol with as many jobs for its guard as all learned policies are strangers to.

    Whoever was trained on drawn jobs alone knows none of a log, so that the training part can be
    decided on, too: four times as many jobs as in the validation part.

    Args:
        protocol: that guards.
        specs: those that are compared or judged.
    """
    learned = [spec for spec in specs if spec.learned]
    strange = all(spec.runs and all(map(knows_no_log, spec.runs)) for spec in learned)
    return replace(protocol, all_before=bool(learned) and strange)


def knows_no_log(run: TrainedRun) -> bool:
    """Whether a policy was certainly trained on drawn jobs alone: as those that come along are."""
    shipped = shipped_policies()
    if run.path in shipped.values():
        return True
    training, task = run.config.training, run.config.task
    if training.start is not None and str(training.start) not in shipped:
        return False  # what it began with may know some
    world_spec = get_spec(task.world.kind)
    if getattr(training, "family", "") not in ("", *world_spec.training.families):
        return False  # a family of tasks may hold logs
    workloads: Registry[WorkloadSpec] = world_spec.workloads
    return not issubclass(workloads.get(task.workload.kind).workload, DividedWorkload)
