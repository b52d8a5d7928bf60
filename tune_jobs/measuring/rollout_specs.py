"""``rollout:POLICY:FUTURES``: one-step rollouts of another policy as a line of a comparison."""

from dataclasses import dataclass

from cluster_env.core.errors import InputError, shortened
from cluster_env.evaluation import PolicyGroup
from cluster_env.evaluation.lookahead import Lookahead, RolloutPolicy
from tune_jobs.measuring.policy_specs import PolicySpec, heuristic_spec, learned_specs
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import Decode, TrainedRun, find_runs, is_heuristic, load_runs

PREFIX = "rollout:"


@dataclass(frozen=True)
class RolloutSpec(PolicySpec):
    """A policy whose decisions are compared with others through sampled futures."""

    base: PolicySpec | None = None
    num_futures: int = 0

    def check(self, protocol: EvaluationProtocol) -> None:
        """See `PolicySpec.check`; refuses worlds in which futures cannot be sampled, too."""
        assert self.base is not None
        self.base.check(protocol)
        Lookahead(protocol.task, self.num_futures)


def is_rollout(name: str) -> bool:
    """Whether a name means rollouts of a policy."""
    return name.startswith(PREFIX)


def rollout_runs(name: str, decode: Decode) -> list[TrainedRun]:
    """The runs whose policy a name means; none for a heuristic.

    Raises:
        InputError: if the name is no name of rollouts, or means no policy, or several.
    """
    base, _ = _parts(name)
    return [] if is_heuristic(base) else load_runs(find_runs([base]), decode)


def rollout_spec(name: str, decode: Decode) -> RolloutSpec:
    """Rollouts of the policy that a name means.

    Raises:
        InputError: see `rollout_runs`.
    """
    base_name, num_futures = _parts(name)
    runs = rollout_runs(name, decode)
    specs = learned_specs(runs, decode) if runs else [heuristic_spec(base_name)]
    if len(specs) > 1:
        raise InputError(f"{name} names {len(specs)} policies; name one")
    (base,) = specs
    key = f"{PREFIX}{base.key}:{num_futures}"

    def make(protocol: EvaluationProtocol) -> PolicyGroup:
        group, lookahead = base.make(protocol), Lookahead(protocol.task, num_futures)
        shown = f"{PREFIX}{group.name}:{num_futures}"
        return PolicyGroup(
            shown, tuple(RolloutPolicy(shown, member, lookahead) for member in group.members)
        )

    told = {**vars(base), "key": key, "make": make}
    return RolloutSpec(**told, base=base, num_futures=num_futures)


def _parts(name: str) -> tuple[str, int]:
    """The policy and the number of futures that a name of rollouts has."""
    base, _, futures = name.removeprefix(PREFIX).rpartition(":")
    if not base or not futures.isdecimal():
        raise InputError(
            f"rollouts are named rollout:POLICY:FUTURES, as rollout:POLICY:40, not "
            f"'{shortened(name)}'"
        )
    return base, int(futures)
