"""A search in this process: what `rllib_configs.algorithms.evolution` finds, without RLlib."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.seeding import Split
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.evolution import CandidateSearch, Judged
from rllib_configs.networks.registry import Weights, network_of
from rllib_configs.runners.candidates import (
    CANDIDATES,
    CandidateUnit,
    CandidateWork,
    judged_by_all,
    units_of,
)
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays
from rllib_configs.search_problem import adapted_experiment, joined, judge_of, split_up


def search_here(experiment: ExperimentConfig, start: Weights) -> Weights:
    """The weights that were best on validation jobsets, to the last bit those of `metasched train`.

    For searches that are small beside the start of Ray, such as those for one log.

    Args:
        experiment: what is searched for; multipliers of limits stay as they are.
        start: weights of the network by name; what is searched for begins with them.
    """
    return _search(experiment, work_of(experiment), start)[0]


def _search(
    experiment: ExperimentConfig, work: "CandidateWork | AdaptedWork", start: Weights
) -> tuple[Weights, Part]:
    """See `search_here`; with the sums over its training episodes."""
    training, judge = experiment.training, judge_of(experiment)
    fixed = {name: start[name] for name in network_of(experiment).fixed}
    begin = joined(start, work.shapes)
    search = CandidateSearch(
        begin, training.step_size, training.episodes_per_jobset, experiment.seed
    )

    def played(
        candidates: np.ndarray, split: Split, first: int, count: int, iteration: int | None
    ) -> tuple[Judged, Part]:
        units = units_of(
            *(split, first, count, training.jobsets_per_unit, len(candidates), iteration)
        )
        work.set_weights({CANDIDATES: candidates, **fixed})
        part, *others = [work.play(unit)[0] for unit in units]
        part = sum(others, part)
        return judged_by_all(units, part), part

    best, lowest, total = search.mean, np.inf, Part()
    for iteration in range(training.iterations):
        first = iteration * training.jobsets if training.fresh_jobsets else 0
        candidates = search.ask(iteration)
        judged, part = played(candidates, Split.TRAIN, first, training.jobsets, iteration)
        search.tell(judge.costs(judged))
        total = total + Part(sums=part.sums)
        done = iteration + 1
        if training.validate_every >= training.iterations:  # the only trial would decide nothing
            best = search.mean
            continue
        if done % training.validate_every and done != training.iterations:
            continue
        count = training.validation_jobsets
        cost = judge.final_costs(played(search.mean[None], Split.VALIDATION, 0, count, None)[0])[0]
        if cost < lowest:
            best, lowest = search.mean, float(cost)
    return {**start, **split_up(best, work.shapes)}, total


class AdaptedWork:
    """Plays candidates after an inner search from each of them, as in ES-MAML.

    A candidate's result on a jobset is that of the policy which a search of
    ``training.adaptation`` finds from it, on other jobsets of the same task. The inner search's
    jobsets and random numbers depend on seed, split and index of the jobset alone: all candidates
    of an iteration have the same (common random numbers), whoever plays them.

    Attributes:
        shapes: see `CandidateWork`.
    """

    def __init__(self, experiment: ExperimentConfig) -> None:
        self._experiment = experiment
        tasks = range(experiment.training.adaptation.num_tasks)
        self._works = [CandidateWork(adapted_experiment(experiment, task)) for task in tasks]
        self.shapes = self._works[0].shapes
        self._weights: Arrays = {}

    def set_weights(self, weights: Arrays) -> None:
        """Takes the candidates, as `CandidateWork.set_weights`."""
        self._weights = weights

    def play(self, unit: CandidateUnit) -> tuple[Part, None]:
        """Adapts candidates to the task of each jobset of a unit, and plays them on that jobset."""
        total, judged = Part(), []
        for index in unit.jobsets:
            part, on_jobset = self._play_jobset(unit, index)
            total = total + part
            judged.append(on_jobset)
        return Part(sums=total.sums, per_unit={unit.index: np.concatenate(judged, axis=1)}), None

    def _play_jobset(self, unit: CandidateUnit, index: int) -> tuple[Part, NDArray[np.float64]]:
        """Sums over all episodes, inner ones too, and results ``(num_candidates, 1, ...)``."""
        task = index % len(self._works)
        inner = adapted_experiment(self._experiment, task, (int(unit.split), index))
        inner_work = CandidateWork(inner)
        common = {name: value for name, value in self._weights.items() if name != CANDIDATES}
        total, adapted = Part(), []
        for number in unit.candidates:
            start = split_up(self._weights[CANDIDATES][number], self.shapes) | common
            weights, part = _search(inner, inner_work, start)
            adapted.append(joined(weights, self.shapes))
            counted = {name: part.sums[name] for name in ("jobs", "episodes")}
            total = total + Part(sums=counted)
        work = self._works[task]
        work.set_weights({CANDIDATES: np.stack(adapted), **common})
        part, _ = work.play(replace(unit, jobsets=(index,), candidates=range(len(adapted))))
        return total + Part(sums=part.sums), part.per_unit[unit.index]


def work_of(experiment: ExperimentConfig) -> CandidateWork | AdaptedWork:
    """What the runners of a search do."""
    adapts = experiment.training.adaptation.iterations > 0
    return AdaptedWork(experiment) if adapts else CandidateWork(experiment)
