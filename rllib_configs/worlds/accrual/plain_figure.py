"""The paper's experiments once more, in plain Python: what their speed is compared with."""

from collections.abc import Iterator
from dataclasses import replace

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.accrual.heuristics import COLUMNS
from rllib_configs.worlds.accrual.plain import Choice, PlainLearner, PlainServer, nothing, smallest
from rllib_configs.worlds.accrual.servers import POLICIES, Setting


def plain_experiment(setting: Setting, index: int) -> Iterator[tuple[str, str, float]]:
    """What `rllib_configs.worlds.accrual.servers.experiment` does, for one server alone.

    Args:
        setting: what is measured; values are of a rulebase, and time does not count.
        index: of the server.

    Yields:
        Policy, column, and the utility of all jobs that finished in time.
    """
    [measured] = _jobsets(setting, index, Split.HELD_OUT, setting.steps)
    [learned] = _jobsets(setting, index, Split.TRAIN, setting.learning.steps)
    for policy in POLICIES:
        for column, (preempt, squeeze) in COLUMNS.items():
            preempts = setting.world.preempt and preempt and policy != "none"
            squeezes = setting.world.squeeze and squeeze and policy != "none"
            world = replace(setting.world, preempt=preempts, squeeze=squeezes)
            choose: Choice = smallest if policy == "aggressive" else nothing
            if policy == "utility":
                how = setting.learning
                learner = PlainLearner(world, how.rate, how.rho_rate, how.half)
                until = replace(world, max_time=how.steps)
                PlainServer(until, learned, learner.choose, learner.learn).play()
                choose = learner.choose
            server = PlainServer(replace(world, max_time=setting.steps), measured, choose)
            server.play()
            yield policy, column, server.utility


def _jobsets(setting: Setting, index: int, split: Split, steps: int) -> list[JobSet]:
    return sample_jobsets(setting.workload(steps), setting.seed, split, [index])
