"""A search in this process: what `rllib_configs.algorithms.evolution` finds, without RLlib."""

import numpy as np

from cluster_env.core.seeding import Split
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.evolution import CandidateSearch, Judged
from rllib_configs.networks.registry import Weights, network_of
from rllib_configs.runners.candidates import CANDIDATES, CandidateWork, judged_by_all, units_of
from rllib_configs.search_problem import joined, judge_of, split_up


def search_here(experiment: ExperimentConfig, start: Weights) -> Weights:
    """The weights that were best on validation jobsets, to the last bit those of `metasched train`.

    For searches that are small beside the start of Ray, such as those for one log.

    Args:
        experiment: what is searched for; multipliers of limits stay as they are.
        start: weights of the network by name; what is searched for begins with them.
    """
    training, judge = experiment.training, judge_of(experiment)
    work = CandidateWork(experiment)
    fixed = {name: start[name] for name in network_of(experiment).fixed}
    begin = joined(start, work.shapes)
    search = CandidateSearch(
        begin, training.step_size, training.episodes_per_jobset, experiment.seed
    )

    def judged(
        candidates: np.ndarray, split: Split, first: int, count: int, iteration: int | None
    ) -> Judged:
        units = units_of(
            *(split, first, count, training.jobsets_per_unit, len(candidates), iteration)
        )
        work.set_weights({CANDIDATES: candidates, **fixed})
        part, *others = [work.play(unit)[0] for unit in units]
        return judged_by_all(units, sum(others, part))

    best, lowest = search.mean, np.inf
    for iteration in range(training.iterations):
        first = iteration * training.jobsets if training.fresh_jobsets else 0
        candidates = search.ask(iteration)
        search.tell(
            judge.costs(judged(candidates, Split.TRAIN, first, training.jobsets, iteration))
        )
        done = iteration + 1
        if done % training.validate_every and done != training.iterations:
            continue
        count = training.validation_jobsets
        cost = judge.final_costs(judged(search.mean[None], Split.VALIDATION, 0, count, None))[0]
        if cost < lowest:
            best, lowest = search.mean, float(cost)
    return {**start, **split_up(best, work.shapes)}
