"""The guard over whole comparisons, and decisions that can be kept in a file."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.evaluation import Guard, GuardDecision, PolicyGroup, Result
from cluster_env.worlds import get_heuristic
from tune_jobs.comparing.policy_specs import PolicySpec, heuristic_spec
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.trained_runs import Decode
from tune_jobs.terminal.files import replacing
from tune_jobs.terminal.tables import Value

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
        num_jobsets: how many the guard decided on.
        seconds: that the guard took: tuning the heuristics, evaluating them and the policies.
    """

    spec: PolicySpec
    result: Result
    decisions: tuple[GuardDecision, ...]
    num_jobsets: int
    seconds: float

    def cells(self) -> dict[str, Value]:
        """The columns of its row that other rows lack."""
        return {
            "guard_choice": choice_of(self.decisions),
            "guard_used": sum(decision.learned_is_used for decision in self.decisions),
            "guard_jobsets": self.num_jobsets,
            "guard_reason": "; ".join(dict.fromkeys(one.reason for one in self.decisions)),
            "guard_s": self.seconds,
        }


@dataclass(frozen=True)
class Calibration:
    """The guard on one task.

    Attributes:
        guard: that has evaluated the heuristics.
        num_jobsets: how many it decides on.
        seconds: that tuning and evaluating the heuristics took.
    """

    guard: Guard
    num_jobsets: int
    seconds: float

    @property
    def heuristic(self) -> PolicyGroup:
        """The best heuristic."""
        return self.guard.heuristic

    def line(
        self, spec: PolicySpec, protocol: EvaluationProtocol, learned: Result, heuristic: Result
    ) -> Guarded:
        """Puts a learned spec behind the guard.

        Args:
            spec: the learned spec.
            protocol: what it is prepared for.
            learned: its result on the jobsets of the comparison.
            heuristic: that of the best heuristic on the same jobsets.
        """
        policies = spec.make(protocol).members
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
            replace(spec, key=key, make=lambda protocol: PolicyGroup(name, chosen)),
            Result(name, members),
            decisions,
            self.num_jobsets,
            self.seconds + sum(decision.seconds for decision in decisions),
        )


def calibrate(protocol: EvaluationProtocol) -> Calibration:
    """Prepares the guard: what a learned policy has to beat are all heuristics of the world.

    They are tuned on some validation jobsets and evaluated on others, on which the guard decides.

    Args:
        protocol: at one place of the axis; it says on how many jobsets the guard decides.
    """
    started = perf_counter()
    jobsets = protocol.guard_jobsets()
    kind = protocol.task.kind
    groups = {name: heuristic_spec(name).make(protocol) for name in kind.heuristics.names()}
    baselines = [group for name, group in groups.items() if name in (kind.baselines or groups)]
    guard = Guard(
        baselines,
        jobsets,
        protocol.task.world,
        others=[group for group in groups.values() if group not in baselines],
        limits=protocol.limits,
        metric=protocol.metric,
        run_seed=protocol.task.seed,
        warmup=protocol.warmup,
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
    from rllib_configs.policy_files import load_policy

    try:
        data = json.loads(Path(path).read_text())
        use, run, decode = (str(data[name]) for name in ("use", "run", "decode"))
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} holds no decision of the guard; metasched guard RUN --out FILE writes one"
        ) from None
    policy, config = load_policy(run, "argmax" if decode == "argmax" else "sample")
    return policy if use == "policy" else get_heuristic(use, config.task.build_world())
