"""What policies are compared on."""

from collections.abc import Sequence
from dataclasses import dataclass

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from rllib_configs.task_schema import TaskSection

DEFAULT_JOBSETS = 1000


@dataclass(frozen=True)
class Setting:
    """What policies are compared on.

    Attributes:
        task: cluster, rules and jobs; the load of made-up jobs is replaced.
        metric: name of the metric that decides who is best.
        jobsets: unseen jobsets of each load.
        episodes: episodes of each jobset.
        seed: seed of the jobsets and of the policies' random numbers.
        cap_loads: whether a load that the workload cannot reach is replaced by the highest that
            it can (and shown as ``load_used``); else it is an error.
        warmup: steps at the beginning and at the end of the arrival window whose jobs do not count:
            what is measured is then a cluster in steady operation, and no longer how it fills and
            empties. Heuristics are tuned on the same.
        guard: validation jobsets on which the guard decides between a learned policy and the best
            heuristic, at each load; with 0 nothing is guarded. See `tune_jobs.comparing.guarding`.
    """

    task: TaskSection
    metric: str = "slowdown"
    jobsets: int = DEFAULT_JOBSETS
    episodes: int = 1
    seed: int = 0
    cap_loads: bool = False
    warmup: int = 0
    guard: int = 0

    def loads(self, asked: Sequence[float] | None = None) -> list[float]:
        """The loads to compare at: those asked for, else the task's, measured for a trace.

        Raises:
            InputError: if loads are asked for, but the jobs are a trace's.
        """
        trace = self.task.workload.trace
        if trace is None:
            return list(asked) if asked else [self.task.workload.load]
        if asked:
            raise InputError(
                f"loads can be asked of made-up jobs only, but the jobs are those of the trace "
                f"{trace}, which has the load that it has; give no loads, or set "
                f"task.workload.trace=null"
            )
        return [self.task.build_part(Split.HELD_OUT).load]

    def at(self, load: float) -> TaskSection:
        """The task at a load, with jobs that do not vary; that of a trace is as it is.

        Raises:
            InputError: if the workload cannot reach it.
        """
        if self.task.workload.trace is not None:
            return self.task
        if load <= 0:
            raise InputError(f"a load must be above 0, for instance 0.7 for 70 %, not {load:g}")
        point = self.task.at_point()
        used = min(load, _highest_load(point)) if self.cap_loads else load
        workload = point.workload.model_copy(update={"load": used})
        task = point.model_copy(update={"workload": workload})
        task.build_workload()
        return task


def _highest_load(task: TaskSection) -> float:
    """Load of these made-up jobs when one arrives in every step."""
    section = task.workload.model_copy(update={"load": 1e-6})
    workload = task.model_copy(update={"workload": section}).build_workload()
    assert isinstance(workload, BimodalWorkload)
    return workload.max_load
