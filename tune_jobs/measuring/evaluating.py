"""Specs at places of the axis, as pieces of work that anyone may do: tuned, then evaluated."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from time import perf_counter

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.evaluation import (
    MIN_DISJOINT,
    Estimate,
    PolicyGroup,
    Result,
    compare_policies,
    evaluate,
)
from tune_jobs.measuring.all_weeks import play_weeks, weeks_of
from tune_jobs.measuring.fingerprints import fingerprint_of
from tune_jobs.measuring.policy_specs import PolicySpec, heuristic_spec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.wording import jobs_of
from tune_jobs.measuring.work import Work
from tune_jobs.processes.pieces import Found
from tune_jobs.tables.columns import within_range

_KEPT: dict[tuple[str, str], list[JobSet]] = {}


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What became of a spec at a place."""

    group: PolicyGroup  # tuned
    results: tuple[Result, ...]  # on the held-out jobsets; empty if it is not compared there
    calibration: tuple[Result, ...]  # of each policy, on the jobsets that guards decide on
    weeks: tuple[Result, ...]  # of learned policies and references there, on all weeks of a log
    seconds: float  # that tuning, ``calibration`` and ``weeks`` took

    @property
    def result(self) -> Result:
        """What it achieves on the held-out jobsets."""
        return self.results[0]


@dataclass(frozen=True)
class Evaluation:
    """Specs that are to be evaluated, each at each place; places that guard have jobsets for it."""

    places: Sequence[EvaluationProtocol]
    specs: Sequence[PolicySpec]
    num_compared: int  # the first specs, on held-out jobsets; the others are for guards alone

    def do(self, work: Work) -> Iterator[list[Evaluated]]:
        """What became of the specs, place by place, as soon as all of a place are there."""
        pieces = list(product(range(len(self.places)), range(len(self.specs))))

        def name(piece: tuple[int, int], found: Evaluated) -> str:
            return f"{jobs_of(self.places[piece[0]].task)}: {found.group.name}"

        results = work.measure(evaluate_piece, self, pieces, name=name)
        for _ in self.places:
            yield [next(results) for _ in self.specs]
        next(results, None)  # so that the progress ends


def evaluation_of(
    places: Sequence[EvaluationProtocol],
    compared: Sequence[PolicySpec],
    guarded: Sequence[PolicySpec] = (),
) -> Evaluation:
    """An evaluation of some specs, and where a place guards of all heuristics of its world.

    Guards decide about learned specs that need not be compared.
    """
    known = {spec.key for spec in compared}
    guards = any(place.num_guard_jobsets for place in places)
    judged = judged_heuristics(places[0]) if guards else []
    others = [heuristic_spec(name) for name in judged if name not in known]
    return Evaluation(places, [*compared, *others, *guarded], len(compared))


def evaluate_piece(whole: Evaluation, piece: tuple[int, int]) -> Evaluated:
    """What becomes of a spec at a place, by their indices: a piece of work, see `Spread`."""
    place, spec = whole.places[piece[0]], whole.specs[piece[1]]
    started = perf_counter()
    group = spec.make(place)
    calibration, weeks = list[Result](), list[Result]()
    name = spec.key if spec.learned else group.name
    if place.num_guard_jobsets and (spec.learned or spec.key in judged_heuristics(place)):
        calibration = compare_policies(
            [PolicyGroup(name, (policy,)) for policy in group.members],
            _kept(place, "guard", place.guard_jobsets),
            place.task.world,
            run_seed=place.task.seed,
            also=[place.metric, *place.side_metrics],
            warmup=place.warmup,
        )
        if spec.learned or spec.key in references_at(place):
            jobs = _kept(place, "all weeks", lambda: weeks_of(place))
            weeks = play_weeks(place, jobs, [(name, policy) for policy in group.members])
    seconds = perf_counter() - started
    results = [evaluate_group(place, group)] if piece[1] < whole.num_compared else []
    return Evaluated(group, tuple(results), tuple(calibration), tuple(weeks), seconds)


def evaluate_group(place: EvaluationProtocol, group: PolicyGroup) -> Result:
    """What policies achieve on the held-out jobsets of a place."""
    (result,) = compare_policies(
        [group],
        held_out_jobsets(place),
        place.task.world,
        run_seed=place.task.seed,
        episodes_per_jobset=place.num_episodes,
        also=[place.metric],
        warmup=place.warmup,
    )
    return result


Read = Callable[[EvaluationProtocol, PolicySpec, str, Sequence[Schedule]], Found]
"""What a table needs of schedules, those of each policy of a spec, whose name there is shown."""


def measure(
    protocol: EvaluationProtocol,
    specs: Sequence[PolicySpec],
    read: Read[Found],
    work: Work,
    *,
    plain: bool = False,
) -> list[Found]:
    """What is read of the schedules of each spec on the held-out jobsets of a protocol.

    What is read may be kept if it is plain data.

    Raises:
        InputError: before anything is played, see `PolicySpec.check`.
    """
    for spec in specs:
        spec.check(protocol)

    def name(spec: int, found: Found) -> str:
        return f"{jobs_of(protocol.task)}: {specs[spec].key}"

    shared, pieces = (protocol, specs, read), range(len(specs))
    what = f"{read.__module__}.{read.__qualname__}"
    keys = [fingerprint_of(protocol, [spec], what) for spec in specs] if plain else ()
    return list(work.measure(_play, shared, pieces, keys=keys, name=name))


def _play(
    shared: tuple[EvaluationProtocol, Sequence[PolicySpec], Read[Found]], place: int
) -> Found:
    """Plays a spec, by its index, and reads its schedules: a piece of work."""
    protocol, specs, read = shared
    group, task = specs[place].make(protocol), protocol.task
    jobsets = held_out_jobsets(protocol)
    schedules = [
        evaluate(
            policy,
            jobsets,
            task.world,
            run_seed=task.seed,
            episodes_per_jobset=protocol.num_episodes,
        )
        for policy in group.members
    ]
    return read(protocol, specs[place], group.name, schedules)


def trusted(estimate: Estimate, num_disjoint: int | None) -> Estimate:
    """An estimate without its interval where too few windows of a log fit side by side.

    Where jobsets are drawn one by one, `num_disjoint` is None.
    """
    few = num_disjoint is not None and num_disjoint < MIN_DISJOINT
    return replace(estimate, low=math.nan, high=math.nan, over="nothing") if few else estimate


def estimate_of(result: Result, metric: str, num_disjoint: int | None) -> Estimate:
    """A mean with an interval inside the metric's range, if any can be trusted; see `trusted`."""
    return within_range(metric, trusted(result.estimate(metric, num_disjoint), num_disjoint))


def judged_heuristics(place: EvaluationProtocol) -> list[str]:
    """Heuristics that learned policies have to beat: all of the world, and its references."""
    return list(dict.fromkeys([*place.task.spec.heuristics.names(), *references_at(place)]))


def references_at(place: EvaluationProtocol) -> Sequence[str]:
    """Heuristics whose side metrics limit those of a guarded policy; those of the world."""
    return place.task.spec.training.references(place.task.world)


def held_out_jobsets(place: EvaluationProtocol) -> list[JobSet]:
    """The held-out jobsets of a place, drawn once as long as it is the last one."""
    return _kept(place, "held out", place.held_out)


def _kept(place: EvaluationProtocol, name: str, draw: Callable[[], list[JobSet]]) -> list[JobSet]:
    """Jobsets of a place; those of the last one are kept, because specs come one by one."""
    key = (repr(place), name)
    if key not in _KEPT:
        for other in [other for other in _KEPT if other[0] != key[0]]:
            del _KEPT[other]
        _KEPT[key] = draw()
    return _KEPT[key]
