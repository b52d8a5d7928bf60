"""Policies over the best ordinary rule, sequence by sequence.

A mean over a few sequences hangs on a handful of jobs; the ratio on the same sequence does not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.world import World
from cluster_env.evaluation import evaluate, get_metric
from cluster_env.evaluation.intervals import seeds_interval
from cluster_env.evaluation.metrics import episode_means
from cluster_env.task import Task
from cluster_env.worlds import get_heuristic
from tune_jobs.measuring.choices import choose_config
from tune_jobs.measuring.comparison import spec_cells
from tune_jobs.measuring.fingerprints import fingerprint_of
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import find_runs, load_runs
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.scenarios import Scenario, logs_of
from tune_jobs.tables.frames import Row

MOST_SEQUENCES = 200

SIDE_METRICS = ("utilization_to_end", "utilization", "wait", "longest_wait")


Group = tuple[World, list[JobSet]]  # sequences that one machine runs


@dataclass(frozen=True)
class Ratios:
    """Ratios in scenarios; `Scenario.named` may also be one of `Training.families`."""

    title: str
    scenarios: Callable[[FigureRequest], Iterator[Scenario]]

    def collect(self, request: FigureRequest) -> list[Row]:
        """A row for each scenario and policy: ratio to the best baseline, and means.

        Raises:
            InputError: if a log or a run cannot be used.
        """
        runs = load_runs(find_runs(request.runs), request.decode)
        rows: list[Row] = []
        for scenario in self.scenarios(request):
            changes = scenario.changes(request)
            config = choose_config(scenario.preset, changes, request.task_options, runs)
            task = config.task.build(config.name, request.seed)
            specs = request.specs(task.spec.baselines, runs)
            head = {"exhibit": self.title, "place": scenario.name}
            rows += ({**head, **row} for row in _rows(scenario, task, specs, request))
        return rows


def _rows(
    scenario: Scenario, task: Task, specs: Sequence[PolicySpec], request: FigureRequest
) -> Iterator[Row]:
    groups = _groups(scenario, task, request)
    num_sequences = sum(len(jobsets) for _, jobsets in groups)
    names = (task.spec.headline, *SIDE_METRICS)
    count = min(request.num_jobsets, MOST_SEQUENCES)
    protocol = EvaluationProtocol(task, num_jobsets=count)
    keys = [fingerprint_of(protocol, [spec], scenario.named, names) for spec in specs]

    def name(spec: int, found: object) -> str:
        return f"{scenario.name}: {specs[spec].key}"

    measured = request.work.measure(
        _measure, (specs, groups, task, names), range(len(specs)), keys=keys, name=name
    )
    found = {
        spec.key: {name: np.asarray(values) for name, values in one.items()}
        for spec, one in zip(specs, measured, strict=True)
    }
    logs = {key: np.log(values[task.spec.headline]) for key, values in found.items()}
    best = min(task.spec.baselines, key=lambda name: float(logs[name].mean()))
    for spec in specs:
        ratio = seeds_interval(logs[spec.key] - logs[best])
        yield {
            "metric": task.spec.headline,
            "world": task.world.kind,
            **spec_cells(spec, spec.key),
            "told": spec.told(EvaluationProtocol(task)),
            "jobsets": num_sequences,
            "num_jobs": sum(jobset.num_jobs for _, jobsets in groups for jobset in jobsets),
            "best_rule": best,
            "ratio": float(np.exp(ratio.value)),
            "ratio_low": float(np.exp(ratio.low)),
            "ratio_high": float(np.exp(ratio.high)),
            "ratio_over": ratio.over,
            "better": float((logs[spec.key] < logs[best]).mean()),
            **{name: float(values.mean()) for name, values in found[spec.key].items()},
        }


def _groups(scenario: Scenario, task: Task, request: FigureRequest) -> list[Group]:
    """The sequences of a scenario; those of a family have a machine each."""
    count = min(request.num_jobsets, MOST_SEQUENCES)
    if scenario.named in task.spec.tools.protocols:
        return [(task.world, list(task.spec.tools.protocols[scenario.named].jobsets(task)))]
    if scenario.named:
        family = task.spec.training.families[scenario.named]
        jobs = int(getattr(task.workload, "jobs", 0))
        place = (task.seed, Purpose.TASK, int(Split.HELD_OUT))
        drawn = (family(task.world, jobs, generator(*place, k)) for k in range(count))
        return [(world, [jobset]) for world, jobset in drawn]
    return [(task.world, task.jobsets(Split.HELD_OUT, range(count)))]


def _measure(
    shared: tuple[Sequence[PolicySpec], Sequence[Group], Task, Sequence[str]], place: int
) -> dict[str, NDArray[np.float64]]:
    """Means of each training seed on each sequence, float64 ``(num_seeds, num_sequences)``."""
    specs, groups, task, names = shared
    spec = specs[place]
    found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    for world, jobsets in groups:
        if spec.learned:
            policies = spec.make(EvaluationProtocol(replace(task, world=world))).members
        else:
            policies = (get_heuristic(spec.key, world),)
        schedules = [evaluate(policy, jobsets, world) for policy in policies]
        for name, parts in found.items():
            metric = get_metric(name)
            parts.append(np.array([episode_means(metric, one) for one in schedules]))
    return {name: np.concatenate(parts, axis=1) for name, parts in found.items()}


def _sizes(request: FigureRequest) -> Iterator[Scenario]:
    for processors in (64, 1024, 8192, 163_840):
        settings = {"world.processors": processors, "workload.jobs": 1024, "workload.load": 0.95}
        yield Scenario(f"{processors:,} processors", "hpc-smoke", settings)


def _families(request: FigureRequest) -> Iterator[Scenario]:
    jobs: dict[str, object] = {"workload.jobs": 1024}
    yield Scenario("Machines of any site", "hpc-smoke", jobs, "any-site")
    for name, settings in (
        ("Lublin's jobs", {"workload.load": 1.0}),
        ("Lublin's jobs of two kinds", {"workload.load": 0.6, "workload.typed": "true"}),
        ("Lublin's jobs, Tsafrir's estimates", {"workload.estimates": "tsafrir"}),
        ("Lognormal jobs", {"workload.kind": "lognormal"}),
    ):
        yield Scenario(f"{name}, 256 processors", "hpc-smoke", {**jobs, **settings})
    for log, machine in logs_of(request) if request.traces else ():
        yield Scenario(f"{log}, windows of 1,024 jobs", "hpc-smoke", machine, "rlscheduler")
        yield Scenario(f"{log}, all of it", "hpc-smoke", machine, "whole")


SIZES = Ratios("Lublin's jobs at 95 % load, by the size of the machine", _sizes)

FAMILIES = Ratios("Generated jobs and job logs", _families)
