"""The guard over whole comparisons, and decisions that can be kept in a file."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.evaluation import Guard, GuardDecision, PolicyGroup, Result
from cluster_env.worlds.deeprm.heuristics import get_heuristic
from tune_jobs.comparing.policy_specs import Decode, PolicySpec, Scene, heuristic_spec
from tune_jobs.terminal.files import replacing
from tune_jobs.terminal.tables import Value

HEURISTICS = ("sjf", "packer", "tetris", "hold")
"""What a learned policy has to beat; the numbers of the last two are tuned first."""

CALIBRATION_JOBSETS = 500
"""Validation jobsets that the guard decides on: of heuristics that are nearly equally good, the
better one shows on many jobsets only."""


@dataclass(frozen=True)
class Guarded:
    """A learned spec behind the guard.

    Attributes:
        spec: its line, ``guarded NAME``.
        result: what it achieved, on the jobsets of the comparison.
        decisions: of the guard, one for each training seed.
        jobsets: how many the guard decided on.
        seconds: that the guard took: tuning the heuristics, evaluating them and the policies.
    """

    spec: PolicySpec
    result: Result
    decisions: tuple[GuardDecision, ...]
    jobsets: int
    seconds: float

    @property
    def used(self) -> int:
        """Number of training seeds whose policy is used."""
        return sum(decision.learned_is_used for decision in self.decisions)

    def cells(self) -> dict[str, Value]:
        """The columns of its row that other rows lack."""
        return {
            "guard_choice": choice_of(self.decisions),
            "guard_used": self.used,
            "guard_jobsets": self.jobsets,
            "guard_s": self.seconds,
        }


@dataclass(frozen=True)
class Calibration:
    """The guard on one task.

    Attributes:
        guard: that has evaluated the heuristics.
        jobsets: how many it decides on.
        seconds: that tuning and evaluating the heuristics took.
    """

    guard: Guard
    jobsets: int
    seconds: float

    @property
    def heuristic(self) -> PolicyGroup:
        """The best heuristic."""
        return self.guard.heuristic

    def line(self, spec: PolicySpec, scene: Scene, learned: Result, heuristic: Result) -> Guarded:
        """Puts a learned spec behind the guard.

        Args:
            spec: the learned spec.
            scene: what it is prepared for.
            learned: its result on the jobsets of the comparison.
            heuristic: that of the best heuristic on the same jobsets.
        """
        policies = spec.make(scene).members
        decisions = tuple(self.guard.decide(policy, spec.key) for policy in policies)
        key = f"guarded {spec.key}"
        name = f"{key} -> {choice_of(decisions)}"
        chosen = tuple(decision.chosen for decision in decisions)
        members = tuple(
            member if decision.learned_is_used else heuristic.members[0]
            for member, decision in zip(learned.members, decisions, strict=True)
        )
        if not any(decision.learned_is_used for decision in decisions):
            members = heuristic.members  # one policy, and nothing that could differ between seeds
        return Guarded(
            replace(spec, key=key, make=lambda scene: PolicyGroup(name, chosen)),
            Result(name, members),
            decisions,
            self.jobsets,
            self.seconds + sum(decision.seconds for decision in decisions),
        )


def calibrate(scene: Scene, jobsets: Sequence[JobSet], seed: int) -> Calibration:
    """Tunes the heuristics on the scene's validation jobsets, and evaluates them on others.

    Args:
        scene: task and metric.
        jobsets: what the guard decides on: validation jobsets that nothing is tuned on.
        seed: of the policies' random numbers.
    """
    started = perf_counter()
    task = scene.task
    guard = Guard(
        [heuristic_spec(name).make(scene) for name in HEURISTICS],
        jobsets,
        task.cluster.build(),
        task.build_rules(),
        metric=scene.metric,
        run_seed=seed,
        max_time=task.max_time,
        warmup=scene.warmup,
    )
    return Calibration(guard, len(jobsets), perf_counter() - started)


def choice_of(decisions: Sequence[GuardDecision]) -> str:
    """What is used: ``policy``, ``hold*(8)``, or of several seeds ``policy 3, hold*(8) 2``."""
    chosen = ["policy" if decision.learned_is_used else decision.name for decision in decisions]
    counts = Counter(sorted(chosen, key=lambda name: name != "policy"))
    if len(counts) == 1:
        return chosen[0]
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def write_decision(path: Path, decision: GuardDecision, run: Path, decode: Decode) -> None:
    """Writes a decision as JSON, atomically.

    Args:
        path: the file; its folder is created if need be.
        decision: of the guard.
        run: folder of the trained policy.
        decode: how it chooses.
    """
    data = {
        "use": "policy" if decision.learned_is_used else decision.chosen.name,
        "reason": decision.reason,
        "run": str(run.absolute()),
        "decode": decode,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        aside.write_text(json.dumps(data, indent=1) + "\n")


def load_decided(path: Path | str) -> Policy:
    """The policy that a decision in a file says to use.

    Args:
        path: a file that `write_decision` wrote; the run must still be where it was.

    Raises:
        InputError: if the file or the run cannot be read.
    """
    from rllib_configs.policies import load_policy

    try:
        data = json.loads(Path(path).read_text())
        use, run, decode = (str(data[name]) for name in ("use", "run", "decode"))
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} holds no decision of the guard; metasched guard RUN --out FILE writes one"
        ) from None
    policy, config = load_policy(run, "argmax" if decode == "argmax" else "sample")
    return policy if use == "policy" else get_heuristic(use, config.task.cluster.build())
