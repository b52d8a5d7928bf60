"""From what a user names, heuristics and trained runs, to policies to compare."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cluster_env.core.errors import InputError
from cluster_env.core.policy import PlayedPolicy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import PolicyGroup, check_warmup, choose, rank_on, tune, tuned_numbers
from cluster_env.worlds import get_heuristic
from rllib_configs.networks.conditions import told, told_in_words
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import (
    AT,
    Decode,
    TrainedRun,
    check_fits,
    group_by_experiment,
    is_folder,
    training_jobs,
)

if TYPE_CHECKING:
    from rllib_configs.policy_files import LearnedPolicy

VOID_BIASES = (4.0, 2.0, 1.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -16.0)
"""What ``tuned`` tries, see `rllib_configs.policy_files.LearnedPolicy.void_bias`."""


@dataclass(frozen=True)
class PolicySpec:
    """One line of a comparison; of a heuristic nothing is said of training.

    Its policies are made for one protocol, with the name that tables show: ``tetris*(0.002)``.
    """

    key: str  # the same at all places of the axis: ``tetris``
    make: Callable[[EvaluationProtocol], PolicyGroup]
    learned: bool = False
    num_seeds: int = 1  # training runs behind it
    trained_at: float = float("nan")  # on the axis; NaN where jobs varied or were recorded
    trained_on: str = ""  # the jobs in words
    trained_for: str = ""  # objective
    runs: Sequence[TrainedRun] = ()  # as far as they are known
    named: bool = True  # a heuristic or runs have the key as name; else nothing can be checked

    def check(self, protocol: EvaluationProtocol) -> None:
        """Makes sure, before anything is evaluated, that the policies can act.

        Raises:
            InputError: if there is no such heuristic, its number is out of range, or a policy was
                trained in a world that differs too much, or cannot be told of the objective.
        """
        for run in self.runs:
            check_fits(run, protocol.task.world)
            told(run.config.training, protocol.task.objective)
        if self.named and not self.learned:
            get_heuristic(self.key, protocol.task.world)

    def told(self, protocol: EvaluationProtocol) -> str:
        """What the policies are told there, in words; empty for those that are told nothing."""
        return told_in_words(self.runs[0].config, protocol.task.objective) if self.runs else ""


def check_specs(protocol: EvaluationProtocol, specs: Sequence[PolicySpec]) -> None:
    """Finds out what is wrong before anything is evaluated.

    Raises:
        InputError: if two specs have the same name, a policy is for another world, or the
            warm-up leaves nothing of the arrival window.
    """
    keys = [spec.key for spec in specs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"'{twice}' is named twice; name each policy once")
    for spec in specs:
        spec.check(protocol)
    named = protocol.named
    first = protocol.held_out() if named else protocol.task.jobsets(Split.HELD_OUT, range(1))
    check_warmup(protocol.warmup, [jobset.window for jobset in first])


def heuristic_spec(spec: str) -> PolicySpec:
    """A heuristic; one that takes a number is tuned at each place anew if it is named without."""

    def make(protocol: EvaluationProtocol) -> PolicyGroup:
        world = protocol.task.world
        if not tuned_numbers(spec, world):
            return PolicyGroup(spec, (get_heuristic(spec, world),))
        best = tune(
            spec, protocol.tuning_jobsets(), world, metric=protocol.metric, warmup=protocol.warmup
        )
        return PolicyGroup(best.name, (best.policy,))

    return PolicySpec(spec, make)


def split_names(texts: Iterable[str]) -> list[str]:
    """Names from options that hold one each, or several with commas between.

    A text that names a folder as it is means that folder, whatever signs are in it.
    """
    names = []
    for text in texts:
        parts = [text] if is_folder(text) else map(str.strip, text.split(","))
        names += [part for part in parts if part]
    return names


def learned_specs(runs: Sequence[TrainedRun], decode: Decode) -> list[PolicySpec]:
    """One spec for each group of runs that differ in their seed alone."""
    return [learned_spec(key, group, decode) for key, group in group_by_experiment(runs)]


def learned_name(key: str) -> str:
    """The key of a learned spec, for where the jobs that it was trained on stand beside."""
    name, at, rest = key.partition(AT)
    decode = rest.partition(" ")[2]
    return f"{name} {decode}" if at and decode else name


def learned_spec(key: str, runs: Sequence[TrainedRun], decode: Decode) -> PolicySpec:
    """The policies of runs that differ in their seed alone, under a name."""
    played = isinstance(runs[0].policy, PlayedPolicy)  # nothing is drawn then
    name = key if decode == "sample" or (played and decode == "argmax") else f"{key} ({decode})"
    known: dict[str, PolicyGroup] = {}

    def make(protocol: EvaluationProtocol) -> PolicyGroup:
        world, objective = protocol.task.world, protocol.task.objective
        policies = [run.policy.acting_in(world, objective) for run in runs]
        if decode != "tuned":
            return PolicyGroup(name, tuple(policies))
        where = repr((protocol.task, protocol.metric, protocol.warmup))
        if where not in known:
            members = [tuned_void_bias(policy, protocol) for policy in policies]
            biases = sorted({member.void_bias for member in members})
            shown = " to ".join(f"{bias:g}" for bias in dict.fromkeys((biases[0], biases[-1])))
            known[where] = PolicyGroup(f"{key}*(void bias {shown})", tuple(members))
        return known[where]

    trained_at, trained_on = training_jobs(runs[0].config)
    return PolicySpec(
        name,
        make,
        learned=True,
        num_seeds=len(runs),
        trained_at=trained_at,
        trained_on=trained_on,
        trained_for=runs[0].config.task.build_objective().name,
        runs=runs,
    )


def tuned_void_bias(policy: "LearnedPolicy", protocol: EvaluationProtocol) -> "LearnedPolicy":
    """A policy with the void bias that is best on validation jobsets, as heuristics are tuned.

    How much it pays to hold jobs back depends on how long they keep arriving and how crowded the
    cluster gets, which a policy that was trained elsewhere cannot know. Which job to start next
    carries over far better. One number sets it right, without training. The last action is void;
    of equally good numbers the first wins.
    """
    policies = {bias: replace(policy, void_bias=bias, decode="argmax") for bias in VOID_BIASES}
    score = rank_on(
        protocol.tuning_jobsets(),
        protocol.task.world,
        metric=protocol.metric,
        warmup=protocol.warmup,
    )
    return policies[choose(policies, score)]
