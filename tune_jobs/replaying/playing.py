"""A whole log under policies: these are chosen and checked, then each is a piece of work."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.schedule import Schedule
from cluster_env.core.world import World
from cluster_env.evaluation import evaluate
from cluster_env.task import Task
from cluster_env.workloads.recorded import RecordedJobs
from tune_jobs.commands import logs
from tune_jobs.measuring.policy_specs import (
    PolicySpec,
    check_specs,
    heuristic_spec,
    learned_spec,
    split_names,
)
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import Decode, TrainedRun, find_runs, is_heuristic, load_runs
from tune_jobs.measuring.work import Work
from tune_jobs.replaying.choices import task_of_log


@dataclass(frozen=True, eq=False)
class Chosen:
    """A log and the policies that are to play it.

    Attributes:
        task: its one jobset is the whole log.
        jobs: of the log.
        specs: of the policies, each trained run by itself.
        remarks: sentences about what was not said.
    """

    task: Task
    jobs: RecordedJobs
    specs: Sequence[PolicySpec]
    remarks: list[str]

    @property
    def protocol(self) -> EvaluationProtocol:
        """That of the one jobset."""
        return EvaluationProtocol(self.task, num_jobsets=1)


@dataclass(frozen=True, eq=False)
class Replay:
    """A whole log under one policy.

    Attributes:
        name: of the policy.
        schedule: its one episode.
        seconds: that playing took.
    """

    name: str
    schedule: Schedule
    seconds: float


def choose(options: logs.Replay, usual: str = "") -> Chosen:
    """The log and the policies that options name.

    Args:
        options: of the command.
        usual: plays where no policy is named, and no site has a rule; by default the world's
            baselines do.

    Raises:
        InputError: if the log, the machine or a policy cannot be used.
    """
    chosen, decode = split_names(options.policies), options.decode
    if options.policies and not chosen:
        raise InputError("--policies names nothing; try --policies random")
    runs = {name: load_runs(find_runs([name]), decode) for name in chosen if not is_heuristic(name)}
    every = [run for some in runs.values() for run in some]
    task, jobs, remarks = task_of_log(
        options.file,
        options.settings,
        options.task_options,
        guess=False,
        runs=every,
        seed=options.seed,
    )
    if not chosen and usual:
        site: Any = getattr(task.world, "site", None)
        chosen = [(site and site.rule) or usual]
    specs: list[PolicySpec] = []
    for name in chosen or task.spec.baselines:
        specs += [] if name in runs else [heuristic_spec(name)]
        specs += [spec_of(run, decode) for run in runs.get(name, ())]
    jobs = replace(jobs, path=options.file)  # as the user calls it: example
    made = Chosen(task, jobs, specs, remarks)
    check_specs(made.protocol, specs)
    return made


def spec_of(run: TrainedRun, decode: Decode) -> PolicySpec:
    """The policy of one run, under the name of its folder, also where seeds alone differ."""
    return replace(learned_spec("", [run], decode), key=run.path.name)


def play(chosen: Chosen, work: Work, more: Sequence[PolicySpec] = ()) -> list[Replay]:
    """Plays the log under each policy, then under more."""
    protocol, specs = chosen.protocol, [*chosen.specs, *more]
    policies = [(spec.key, spec.make(protocol).members[0]) for spec in specs]
    (jobset,) = protocol.held_out()
    return play_jobs(policies, chosen.task.world, jobset, chosen.task.seed, work)


def play_jobs(
    policies: Sequence[tuple[str, Policy]], world: World, jobset: JobSet, seed: int, work: Work
) -> list[Replay]:
    """Plays jobs under policies, which have names."""
    shared = world, jobset, seed
    return list(work.measure(_play, shared, policies, unit="policy", name=lambda _, one: one.name))


def _play(shared: tuple[World, JobSet, int], policy: tuple[str, Policy]) -> Replay:
    (world, jobset, seed), (name, acting) = shared, policy
    begin = perf_counter()
    schedule = evaluate(acting, [jobset], world, run_seed=seed)
    return Replay(name, schedule, perf_counter() - begin)
