"""The guard over whole comparisons, and decisions that can be kept in a file."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

from cluster_env.core.errors import InputError
from cluster_env.core.json_text import read_json
from cluster_env.core.policy import Policy
from cluster_env.core.registry import Registry
from cluster_env.core.spec import WorkloadSpec
from cluster_env.evaluation import GuardDecision, Judge, PolicyGroup, Result
from cluster_env.objectives import get_objective
from cluster_env.workloads import DividedWorkload
from cluster_env.worlds import get_heuristic, get_spec, shipped_policies
from rllib_configs.config.task_schema import TaskSection
from rllib_configs.policy_files import load_policy
from tune_jobs.measuring.all_weeks import AllWeeks, play_weeks, weeks_of
from tune_jobs.measuring.evaluating import (
    Evaluated,
    Evaluation,
    evaluate_group,
    judged_heuristics,
    references_at,
)
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import Decode, TrainedRun
from tune_jobs.tables.frames import Value
from tune_jobs.terminal.files import write_whole

CALIBRATION_JOBSETS = 500
"""Validation jobsets that the guard decides on: of heuristics that are nearly equally good, the
better one shows on many jobsets only."""


def with_guard_jobs(
    protocol: EvaluationProtocol, specs: Sequence[PolicySpec]
) -> EvaluationProtocol:
    """The protocol with as many jobs for its guard as all learned policies are strangers to.

    Whoever was trained on drawn jobs alone knows none of a log, so that the training part can be
    decided on, too: four times as many jobs as in the validation part.
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


@dataclass(frozen=True)
class Guarded:
    """A learned spec behind the guard."""

    spec: PolicySpec  # ``guarded NAME``
    result: Result  # on the jobsets of the comparison
    decisions: tuple[GuardDecision, ...]  # one for each training seed
    num_jobsets: int  # that the guard decided on
    seconds: float  # of tuning the heuristics, evaluating them and the policies, whoever did it

    def cells(self) -> dict[str, Value]:
        """The columns of its row that other rows lack."""
        return {
            "guard_choice": choice_of(self.decisions),
            "guard_used": sum(decision.learned_is_used for decision in self.decisions),
            "guard_jobsets": self.num_jobsets,
            "guard_reason": "; ".join(dict.fromkeys(one.reason for one in self.decisions)),
            "guard_s": self.seconds,
        }


@dataclass(frozen=True, eq=False)
class TaskGuard:
    """The guard on one task, which knows what the heuristics achieve, and the best of them."""

    judge: Judge
    heuristic: PolicyGroup
    num_jobsets: int  # that it decides on
    seconds: float  # that tuning and evaluating the heuristics took, whoever did it
    weeks: AllWeeks | None = None  # of a log, beside its windows

    def decide(self, learned: Evaluated) -> tuple[GuardDecision, ...]:
        """About each policy of a learned spec; see `Judge.decide`."""
        words = [""] * len(learned.calibration)
        if self.weeks is not None:
            words = [self.weeks.violation(one) for one in learned.weeks]
        policies = zip(learned.calibration, learned.group.members, words, strict=True)
        return tuple(
            self.judge.decide(result, policy, self.heuristic, words)
            for result, policy, words in policies
        )

    def line(self, spec: PolicySpec, learned: Evaluated, heuristic: Result) -> Guarded:
        """Puts a learned spec behind the guard, beside the best heuristic on the same jobsets."""
        decisions = self.decide(learned)
        key = f"guarded {spec.key}"
        name = f"{key} -> {choice_of(decisions)}"
        chosen = tuple(decision.chosen for decision in decisions)
        members = tuple(
            member if decision.learned_is_used else heuristic.members[0]
            for member, decision in zip(learned.result.members, decisions, strict=True)
        )
        if not any(decision.learned_is_used for decision in decisions):
            members = heuristic.members  # one policy, and nothing that could differ between seeds
        return Guarded(
            replace(spec, key=key, make=lambda protocol: PolicyGroup(name, chosen)),
            Result(name, members),
            decisions,
            self.num_jobsets,
            self.seconds + learned.seconds,
        )


def calibrate(
    protocol: EvaluationProtocol, specs: Sequence[PolicySpec], evaluated: Sequence[Evaluated]
) -> TaskGuard:
    """Prepares the guard: what a learned policy has to beat are all heuristics of the world.

    Side metrics are compared with those of the best of `Training.references`. On a log that is the
    best over all weeks, and the limits hold there, too (`AllWeeks`). All heuristics are tuned on
    some validation jobsets and evaluated on others, on which the guard decides; see
    `evaluation_of`.
    """
    world_spec = protocol.task.spec
    by_key = {spec.key: one for spec, one in zip(specs, evaluated, strict=True)}
    heuristics = {name: by_key[name] for name in judged_heuristics(protocol)}
    references = references_at(protocol)
    first = references or world_spec.baselines or tuple(heuristics)
    baselines = [one for name, one in heuristics.items() if name in first]
    others = [one for name, one in heuristics.items() if name not in first]
    started = perf_counter()
    whole = [one for name in references for one in heuristics[name].weeks]
    weeks = AllWeeks.of(protocol, whole) if whole else None
    make = partial(
        Judge,
        [one.calibration[0] for one in baselines],
        [one.calibration[0] for one in others],
        limits=protocol.side_metrics,
        metric=protocol.metric,
        reference=heuristics[weeks.reference.name].calibration[0] if weeks else None,
        num_disjoint=protocol.num_disjoint,
    )
    judge, refused = make(), dict[str, str]()
    candidates = [*baselines, *others]
    best = candidates[judge.best]
    while weeks and (words := weeks.violation(_on_all_weeks(protocol, best))):
        refused[best.group.name] = words
        judge = make(refused=refused)
        best = candidates[judge.best]
    seconds = perf_counter() - started + sum(one.seconds for one in heuristics.values())
    return TaskGuard(judge, best.group, protocol.num_guard_jobsets, seconds, weeks)


def _on_all_weeks(protocol: EvaluationProtocol, heuristic: Evaluated) -> Result:
    """What a heuristic achieves there, also if it is none of the references."""
    group = heuristic.group
    found = heuristic.weeks or play_weeks(
        protocol, weeks_of(protocol), [(group.name, group.members[0])]
    )
    return found[0]


def guards_at(
    place: EvaluationProtocol, evaluation: Evaluation, found: Sequence[Evaluated]
) -> list[Guarded]:
    """A guarded line for each learned spec that is compared at a place, from all found there.

    A best heuristic that is not among those compared is evaluated here.
    """
    specs, compared = evaluation.specs, slice(evaluation.num_compared)
    guard = calibrate(place, specs, found)
    known = {one.result.name: one.result for one in found[compared]}
    best = known.get(guard.heuristic.name) or evaluate_group(place, guard.heuristic)
    return [
        guard.line(spec, one, best)
        for spec, one in zip(specs[compared], found[compared], strict=True)
        if spec.learned
    ]


def choice_of(decisions: Sequence[GuardDecision]) -> str:
    """What is used: ``policy``, ``hold*(8)``, or of several seeds ``policy 3, hold*(8) 2``."""
    chosen = ["policy" if decision.learned_is_used else decision.name for decision in decisions]
    counts = Counter(sorted(chosen, key=lambda name: name != "policy"))
    if len(counts) == 1:
        return chosen[0]
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def plain_limits(limits: Mapping[str, float]) -> dict[str, float | None]:
    """Limits as JSON can hold them: none stands for no limit."""
    return {name: share if math.isfinite(share) else None for name, share in limits.items()}


def write_decision(
    path: Path, decision: GuardDecision, protocol: EvaluationProtocol, run: Path, decode: Decode
) -> None:
    """Writes a decision as JSON, atomically.

    With it stands what it was made on: a policy may be conditioned on its objective and limits. A
    policy that ships is written by its name.
    """
    shipped = {folder: name for name, folder in shipped_policies().items()}
    section = TaskSection.of(protocol.task)
    data = {
        "use": "policy" if decision.learned_is_used else decision.chosen.name,
        "reason": decision.reason,
        "run": shipped.get(run, str(run.absolute())),
        "decode": decode,
        "world": section.model_dump(mode="json")["world"],
        "objective": protocol.task.objective.name,
        "limits": plain_limits(decision.limits),
        "disjoint_windows": decision.num_disjoint,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(data, indent=1) + "\n")


def load_decided(path: Path | str) -> Policy:
    """The policy that a decision in a file says to use, in the world that it was made for.

    A run to be used must still be where it was.

    Raises:
        InputError: if the file or the run cannot be read.
    """
    try:
        data = read_json(Path(path))
        use, run, decode, name = (str(data[key]) for key in ("use", "run", "decode", "objective"))
        world = TaskSection.model_validate({"world": data["world"]}).world
        objective = get_objective(name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            f"{path} holds no decision of the guard; write one with "
            "metasched compare --policies RUN --decide --out FOLDER"
        ) from None
    if use != "policy":
        return get_heuristic(use, world)
    policy, _ = load_policy(run, "argmax" if decode == "argmax" else "sample")
    return policy.acting_in(world, objective)
