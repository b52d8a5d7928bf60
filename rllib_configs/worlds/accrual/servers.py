"""The paper's experiments (section 5): servers learn values, and then all policies are measured.

Servers learn side by side and share nothing: one for each experiment, each from its own arrivals.
What is learned is kept as it is while it is measured, on other arrivals. Servers may have a common
queue (section 4.2), with values of their own or one for all of them; jobs may be of projects of
other priorities (section 6). What policies earn on small jobsets stands beside what nobody can beat
who knows all arrivals.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.utility import final_utility
from cluster_env.evaluation import evaluate
from cluster_env.objectives import UTILITY
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.heuristics import COLUMNS, AccrualPolicy
from cluster_env.worlds.accrual.optimum import UtilityBound, utility_bound
from cluster_env.worlds.accrual.rules import Rule
from cluster_env.worlds.accrual.simulator import AccrualSimulator
from cluster_env.worlds.accrual.td import Learners, new_learners
from cluster_env.worlds.accrual.values import VALUE_FUNCTIONS, first_parameters
from cluster_env.worlds.accrual.workloads import PoissonWorkload

if TYPE_CHECKING:
    from rllib_configs.config.schema import ExperimentConfig

POLICIES = {"none": "none", "aggressive": "aggressive", "utility": "value"}
"""Rows of figures 2 and 3 and the scorers behind them."""


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How servers learn.

    Attributes:
        values: ``rulebase`` or ``network``.
        steps: of the clock; the paper has 25,000.
        rate: first learning rate of the parameters.
        rho_rate: first learning rate of the average reward.
        half: updates after which both have halved.
        per_time: whether time between updates counts, see `cluster_env.worlds.accrual.td`.
        scale: that rewards are divided by, likewise.
    """

    values: str = "rulebase"
    steps: int = 25_000
    rate: float = 0.01
    rho_rate: float = 0.01
    half: float = 300.0
    per_time: bool = False
    scale: float = 1.0

    @property
    def kind(self) -> int:
        """Index of the value function in `VALUE_FUNCTIONS`."""
        return VALUE_FUNCTIONS.index(self.values)

    @classmethod
    def of(cls, training: Any) -> "Learning":
        """What the options of the algorithm fuzzy_td say; steps as in the paper."""
        return cls(
            values=training.values,
            rate=training.lr,
            rho_rate=training.rho_rate,
            half=training.half,
            per_time=training.per_time,
        )

    def begin(self, p: NDArray[np.float64], sharing: int = 1) -> Learners:
        """Learners that have seen nothing yet, with these parameters; see `new_learners`."""
        rates = (self.rate, self.rho_rate, self.half)
        return new_learners(self.kind, p, *rates, self.per_time, sharing, self.scale)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is measured.

    Attributes:
        world: the server, or several with one queue; its `max_time` is not looked at.
        rate: jobs that arrive in a step.
        utility: time-utility function.
        steps: of the clock; the paper has 20,000.
        experiments: servers side by side; the paper has 50.
        seed: of all arrivals.
        learning: how values are learned.
    """

    world: Accrual = field(default_factory=Accrual)
    rate: float = 0.1
    utility: str = "linear"
    steps: int = 20_000
    experiments: int = 50
    seed: int = 0
    learning: Learning = field(default_factory=Learning)

    @classmethod
    def of(cls, config: "ExperimentConfig", experiments: int, seed: int) -> "Setting":
        """Server, arrivals and learning of a config of the algorithm fuzzy_td.

        Raises:
            InputError: if it is of another one, or jobs do not arrive at a rate.
        """
        workload = config.task.build().workload
        if config.training.algorithm != "fuzzy_td" or not isinstance(workload, PoissonWorkload):
            raise InputError(
                "servers that learn values need training.algorithm=fuzzy_td and the workload "
                "poisson, as in the preset fuzzy-td"
            )
        given = config.task.world
        assert isinstance(given, Accrual)  # fuzzy_td has said so
        return cls(
            world=given,
            rate=workload.rate,
            utility=workload.utility,
            experiments=experiments,
            seed=seed,
            learning=Learning.of(config.training),
        )

    def workload(self, steps: int) -> PoissonWorkload:
        """Arrivals for so long."""
        return PoissonWorkload(
            processors=self.world.processors,
            projects=self.world.projects,
            rate=self.rate,
            window=steps,
            utility=self.utility,
        )


@dataclass(frozen=True)
class Outcome:
    """What a policy reached.

    Attributes:
        policy: row of figure 2.
        column: column of figure 2.
        productivity: float64 ``(experiments,)``, utility of all jobs that finished in time.
        utilization: float64 ``(experiments,)``, mean share of busy processors.
        parameters: float64 ``(experiments, num_parameters)`` that were learned; None if none.
    """

    policy: str
    column: str
    productivity: NDArray[np.float64]
    utilization: NDArray[np.float64]
    parameters: NDArray[np.float64] | None = None


def loaded(
    setting: Setting, split: Split, steps: int, world: Accrual | None = None
) -> AccrualSimulator:
    """A simulator of all experiments, for so long, by default in the setting's world."""
    simulator = replace(world or setting.world, max_time=steps).simulator()
    jobsets = sample_jobsets(
        setting.workload(steps), setting.seed, split, range(setting.experiments)
    )
    simulator.load(jobsets, UTILITY)
    return simulator


def learn_values(
    setting: Setting,
    column: str,
    simulator: AccrualSimulator | None = None,
    *,
    shared: bool = False,
) -> Learners:
    """Lets every machine, and on it each project, learn by itself for `Learning.steps`.

    Args:
        setting: what is measured.
        column: ``squeeze``, ``preempt`` or ``both``, what the servers may do.
        simulator: with what they learn from, if it is loaded already.
        shared: whether the machines of an experiment tune one value function together. Each still
            has an average reward and learning rates of its own.
    """
    how = setting.learning
    simulator = simulator or loaded(setting, Split.TRAIN, how.steps)
    each = simulator.world.num_learners
    functions = setting.experiments * (1 if shared else each)
    first = first_parameters(how.kind, functions, generator(setting.seed, Purpose.INIT))
    learners = how.begin(first, sharing=each if shared else 1)
    preempt, squeeze = COLUMNS[column]
    simulator.play(Rule("best_fit", "value", preempt, squeeze), learners=learners, learning=True)
    return learners


def experiment(
    setting: Setting,
    policies: Sequence[str] = tuple(POLICIES),
    columns: Sequence[str] = tuple(COLUMNS),
) -> Iterator[Outcome]:
    """Measures policies in columns on the same arrivals, those that learn after they have.

    Args:
        setting: what is measured.
        policies: of `POLICIES`, or orders of the literature such as ``dasa``.
        columns: of `COLUMNS`.
    """
    simulator = loaded(setting, Split.HELD_OUT, setting.steps)
    training = (
        loaded(setting, Split.TRAIN, setting.learning.steps) if "utility" in policies else None
    )
    for policy in policies:
        scorer, order = POLICIES.get(policy, "none"), "best_fit" if policy in POLICIES else policy
        for column in columns:
            learners = learn_values(setting, column, training) if policy == "utility" else None
            simulator.play(Rule(order, scorer, *COLUMNS[column]), learners=learners)
            yield Outcome(
                policy,
                column,
                simulator.earned,
                simulator.busy / (float(simulator.world.capacity) * setting.steps),
                None if learners is None else learners.p.copy(),
            )


POOL_POLICIES = ("none", "aggressive", "own", "shared")
"""What decides on each machine: nothing, the smallest job, values of its own, values of all."""


def pool_of(each: Setting, machines: int, allocation: str) -> Setting:
    """Machines with one queue, of which each brings a server and its share of the arrivals.

    Args:
        each: a server with one machine.
        machines: how many.
        allocation: see `Accrual.allocation`.
    """
    world = replace(each.world, machines=machines, allocation=allocation)
    return replace(each, world=world, rate=machines * each.rate)


def pool_experiment(setting: Setting) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Measures `POOL_POLICIES` on the same arrivals, those that learn after they have.

    Yields:
        Policy, and float64 ``(experiments,)``, utility of all jobs that finished in time.
    """
    simulator = loaded(setting, Split.HELD_OUT, setting.steps)
    for policy in POOL_POLICIES:
        learns = policy in ("own", "shared")
        learners = learn_values(setting, "both", shared=policy == "shared") if learns else None
        simulator.play(Rule("best_fit", "value" if learns else policy), learners=learners)
        yield policy, simulator.earned


def project_experiment(
    setting: Setting, seeds: Sequence[int]
) -> Iterator[tuple[str, bool, list[Schedule]]]:
    """Measures policies that may do both, with priorities of the world's projects and without.

    All have the same arrivals. Those that learn do so once for each of the seeds.

    Yields:
        Policy of `POLICIES`, whether projects have priorities, and for each seed what became of the
        jobs of all experiments; once where nothing is learned.
    """
    rivals = {True: setting.world, False: replace(setting.world, projects=1)}
    for priorities, world in rivals.items():
        simulator = loaded(setting, Split.HELD_OUT, setting.steps, world)
        for policy, scorer in POLICIES.items():
            schedules = []
            for seed in seeds if policy == "utility" else seeds[:1]:
                mine, learners = replace(setting, seed=seed), None
                if policy == "utility":
                    training = loaded(mine, Split.TRAIN, mine.learning.steps, world)
                    learners = learn_values(mine, "both", training)
                simulator.play(Rule("best_fit", scorer), learners=learners)
                schedules.append(simulator.schedule())
            yield policy, priorities, schedules


def unseen_jobsets(setting: Setting) -> list[JobSet]:
    """The arrivals that policies are measured on, of each of the setting's experiments."""
    workload = setting.workload(setting.steps)
    return sample_jobsets(workload, setting.seed, Split.HELD_OUT, range(setting.experiments))


def bound_of(jobset: JobSet, setting: Setting, time_limit_s: float) -> UtilityBound:
    """What nobody can beat on a jobset; see `utility_bound`."""
    return utility_bound(jobset, setting.world, time_limit_s=time_limit_s)


def learned_rulebase(setting: Setting, name: str) -> Policy:
    """A policy that goes by the mean of the rulebases that the setting's servers learn."""
    learned = tuple(learn_values(setting, "both").p.mean(axis=0).tolist())
    return AccrualPolicy(setting.world, name, Rule("best_fit", "value"), parameters=learned)


def earned(policy: Policy, jobsets: Sequence[JobSet], setting: Setting) -> NDArray[np.float64]:
    """Utility of a policy on each jobset, float64 ``(jobsets,)``."""
    schedule = evaluate(policy, jobsets, setting.world, run_seed=setting.seed)
    utility = np.bincount(schedule.episode, final_utility(schedule), len(jobsets))
    return utility.astype(np.float64, copy=False)
