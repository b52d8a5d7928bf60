"""Rules of a scheduler that knows all nodes and decides for all consumers of an episode at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import ZERO, njit_inlined
from cluster_env.worlds.panda.agents import allocate
from cluster_env.worlds.panda.features import RequestFeatures, write_pair
from cluster_env.worlds.panda.plans import (
    MIX,
    NodeSearch,
    collect,
    count_free,
    count_nearest,
    finish_early,
    fit,
    propose,
)
from cluster_env.worlds.panda.state import WAITING, Episode, Scratch

CHOICES = ("best_fit", "fastest_fit", "random", "earliest_finish", "envy_free", "scored")
"""How a rule chooses nodes; the first three are those of `plans.pick`, and the last one takes the
pairs of a consumer and a plan with the highest scores (`features.PAIR`), while they are above 0."""

EARLIEST_FINISH, ENVY_FREE, SCORED = 3, 4, 5

ORDERS = ("arrival", "shortest", "weighted")
"""Who gets its turn first: whoever arrived first, who has the least left to do, or who costs most
for each step that is left (Smith, Various optimizers for single-stage production, 1956)."""

ARRIVAL, WEIGHTED = 0, 2

GOLDEN = 0.6180339887498949
"""Its multiples are spread most evenly over a circle: the clocks at which a hybrid is static."""


class Rule(NamedTuple):
    """What decides for all consumers."""

    choice: int  # of `CHOICES`
    order: int  # of `ORDERS`
    keys: NDArray[np.uint64]  # (num_rows,), of random numbers; an episode takes its first row's
    weights: NDArray[np.float64]  # (len(PAIR),), of a scorer


@njit_inlined
def order_queue(episode: Episode, scratch: Scratch, order: int) -> None:
    """Writes the consumers that wait to ``scratch.queue``."""
    queue = scratch.queue
    for k in range(episode.progress[0].num_waiting):
        # Waiting consumers stand in the order of arrival, which decides between equals.
        consumer, place = episode.waiting[k], k
        while (
            order != ARRIVAL
            and place > 0
            and goes_first(episode, order, consumer, queue[place - 1])
        ):
            queue[place] = queue[place - 1]
            place -= 1
        queue[place] = consumer


@njit_inlined
def goes_first(episode: Episode, order: int, consumer: int, other: int) -> bool:
    """Whether a consumer gets its turn before another one that has arrived earlier."""
    left, other_left = episode.agents[consumer].left, episode.agents[other].left
    if order == WEIGHTED:
        # Products in place of quotients: a consumer may cost nothing.
        left *= episode.consumers[other].rate
        other_left *= episode.consumers[consumer].rate
    return left < other_left


@njit_inlined
def pick_in_turn(episode: Episode, scratch: Scratch, num_waiting: int, free: int) -> None:
    """Round robin with withdrawal, which leaves each of those that take part satisfied.

    The consumers pick in turn, the most valued node that is left, each until it is satisfied. In
    such a turn nobody envies who picks behind it, nor, but for one node, who picks before it
    (Caragiannis et al., The unreasonable fairness of maximum Nash welfare, 2019, section 2). If one
    cannot be satisfied, the last of these withdraws and all pick anew. As each needs a node, no
    more take part than nodes are free.
    Of ``scratch``, ``picker`` and ``withdrawn`` are written, by places in the queue.
    """
    withdrawn = scratch.withdrawn
    withdrawn[:num_waiting] = False
    unsatisfied = num_waiting
    while unsatisfied >= 0:
        # Those at the end of the queue for whom there is no node do not take part.
        taking_part, end = 0, 0
        while end < num_waiting and taking_part < free:
            taking_part += not withdrawn[end]
            end += 1
        withdrawn[end:num_waiting] = True
        # All pick in turn, until nobody that lacks something can pick.
        scratch.picker[:] = -1
        scratch.reserved[:] = False
        picking, unsatisfied = True, -1
        while picking:
            picking, unsatisfied = False, -1
            for k in range(end):
                if not withdrawn[k] and lacks_something(episode, scratch, k):
                    if pick_next(episode, scratch, k):
                        picking = True
                    else:
                        unsatisfied = k
        # If somebody still lacks something, the last of these withdraws, and all pick anew.
        if unsatisfied >= 0:
            withdrawn[unsatisfied] = True
            withdrawn[end:num_waiting] = False
    scratch.reserved[:] = False


@njit_inlined
def lacks_something(episode: Episode, scratch: Scratch, k: int) -> bool:
    """Whether the k-th consumer of the queue needs more than it has picked."""
    spec = episode.consumers[scratch.queue[k]]
    cores, memory = spec.cores, spec.memory
    for node in range(scratch.picker.size):
        if scratch.picker[node] == k:
            cores -= episode.cloud.cores[node]
            memory -= episode.cloud.memory[node]
    return cores > 0 or memory > 0


@njit_inlined
def pick_next(episode: Episode, scratch: Scratch, k: int) -> bool:
    """Lets the k-th consumer pick the node that it values most; whether there was one.

    It would give for a node its speed times the share of the demand that it has; where memory is
    asked for, too, the mean of both shares counts.
    """
    consumer, held, cloud = scratch.queue[k], 0, episode.cloud
    for node in range(scratch.picker.size):
        held += scratch.picker[node] == k
    if held == cloud.held:
        return False
    # It picks among all nodes that are free now, wherever they stand and however fast they are.
    spec, search = (
        episode.consumers[consumer],
        NodeSearch(ZERO, ZERO, episode.progress[0].time, 0.0),
    )
    best, most = -1, -np.inf
    for i in range(collect(episode, scratch, consumer, search)):
        node = scratch.offer.node[i]
        share = min(cloud.cores[node] / spec.cores, 1.0)
        if spec.memory:
            share = (share + min(cloud.memory[node] / spec.memory, 1.0)) / 2
        if cloud.speed[node] * share > most:
            best, most = node, cloud.speed[node] * share
    if best < 0:
        return False
    scratch.picker[best], scratch.reserved[best] = k, True
    return True


@njit_inlined
def best_plan(
    episode: Episode,
    scratch: Scratch,
    consumer: int,
    weights: NDArray[np.float64],
    num_waiting: int,
    free: float,
) -> tuple[float, int]:
    """The plan of a consumer that waits and holds nothing with the highest score.

    ``num_waiting`` consumers waited when the instant began, and all free nodes could do ``free`` in
    a step then. ``scratch.chosen`` begins with the plan's nodes. Returns the score, and how many
    nodes; -inf and 0 if there is no plan.
    """
    spec, progress = episode.consumers[consumer], episode.progress[0]
    most, count = -np.inf, ZERO
    if free <= 0.0 or not propose(episode, scratch, consumer):
        return most, count
    request = RequestFeatures(
        *(episode.agents[consumer].left, spec.cores, progress.time - spec.arrival, spec.topology),
        *(spec.core_type >= 0, num_waiting, free),
    )
    # The score of a plan is linear in the features of the pair.
    for p in range(scratch.facts.shape[0]):
        write_pair(request, scratch.facts[p], scratch.pair)
        score = 0.0
        for k in range(scratch.pair.size):
            score += weights[k] * scratch.pair[k]
        if score > most:
            most, count = score, scratch.num_members[p]
            for k in range(count):
                scratch.chosen[k] = scratch.members[p, k]
    return most, count


@njit_inlined
def sift_down(scratch: Scratch, place: int, end: int) -> None:
    """Moves a consumer of the queue behind all with higher scores, up to an end."""
    consumer, score = scratch.queue[place], scratch.score[place]
    while place + 1 < end and scratch.score[place + 1] > score:
        scratch.queue[place] = scratch.queue[place + 1]
        scratch.score[place] = scratch.score[place + 1]
        place += 1
    scratch.queue[place], scratch.score[place] = consumer, score


@njit_inlined
def start_pairs(
    episode: Episode, scratch: Scratch, weights: NDArray[np.float64], num_waiting: int, free: float
) -> None:
    """Starts the pair with the highest score, again and again, as long as there is one above 0.

    A score can but fall when others take nodes, so that only the first one is worked out anew.
    """
    # Places from `scored` on are in order; the others have no score yet.
    scored, first = num_waiting, ZERO
    while first < num_waiting:
        place = scored - 1 if scored > 0 else first
        consumer, before = scratch.queue[place], scratch.score[place]
        score, count = best_plan(episode, scratch, consumer, weights, num_waiting, free)
        scratch.score[place] = score
        if scored > 0:
            # All get a score first, from behind, each into its place.
            sift_down(scratch, place, num_waiting)
            scored -= 1
        elif score < before:
            # Others have taken its nodes: it may no longer be the first.
            sift_down(scratch, place, num_waiting)
        elif score > 0.0:
            allocate(episode, consumer, scratch.chosen[:count])
            first += 1
        else:
            break  # nobody else has a higher one


@njit_inlined
def decide_for_all(episode: Episode, scratch: Scratch, rule: Rule, choice: int) -> None:
    """Decides for the consumers that wait and hold nothing, at one instant."""
    now, num_waiting = episode.progress[0].time, episode.progress[0].num_waiting
    order_queue(episode, scratch, rule.order)
    scratch.reserved[:] = False
    free, _, free_work = count_free(episode)
    # Two rules need all consumers at once.
    if choice == SCORED:
        count_nearest(episode, scratch)
        start_pairs(episode, scratch, rule.weights, num_waiting, free_work)
        return
    if choice == ENVY_FREE:
        pick_in_turn(episode, scratch, num_waiting, free)
    for k in range(num_waiting):
        # Which nodes, and when are they free?
        consumer, start, count = scratch.queue[k], now, ZERO
        if episode.agents[consumer].stage != WAITING:
            continue
        if choice == EARLIEST_FINISH:
            count, start = finish_early(episode, scratch, consumer)
        elif choice == ENVY_FREE:
            for node in range(scratch.picker.size):
                if scratch.picker[node] == k and not scratch.withdrawn[k]:
                    scratch.chosen[count] = node
                    count += 1
        else:
            key = rule.keys[episode.first_row] + np.uint64(1 + now) * MIX
            key += np.uint64(consumer) << np.uint64(32)
            count = fit(episode, scratch, consumer, choice, key)
        if start == now and count:
            allocate(episode, consumer, scratch.chosen[:count])
        elif count:
            # It waits for these nodes, which nobody else gets.
            for i in range(count):
                scratch.reserved[scratch.chosen[i]] = True
