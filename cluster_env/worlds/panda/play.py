"""Rules that decide for all consumers at once."""

import numpy as np

from cluster_env.core.compiled import njit_inlined
from cluster_env.worlds.panda.arrays import WAITING, Cloud, Episodes, Jobs
from cluster_env.worlds.panda.envy import share_out
from cluster_env.worlds.panda.holding import catch, let_all_go, satisfy, start
from cluster_env.worlds.panda.picking import BEST_FIT, RANDOM
from cluster_env.worlds.panda.planning import Plan, finish_early, fit, free_work
from cluster_env.worlds.panda.proposing import best_plan, count_wanted

CHOICES = ("best_fit", "fastest_fit", "random", "earliest_finish", "envy_free", "scored")
"""How a rule chooses nodes; the first three are those of `picking`, and the last one takes the
pairs of a consumer and a plan with the highest scores (`scoring`), as long as they are above 0."""

EARLIEST_FINISH, ENVY_FREE, SCORED = 3, 4, 5

ORDERS = ("arrival", "shortest")
"""Who gets its turn first: whoever arrived first, or who has the least left to do."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
GOLDEN = 0.6180339887498949
"""Its multiples are spread most evenly over a circle: the clocks at which a hybrid is static."""


@njit_inlined
def overrules(c: Cloud, clock: int) -> bool:
    """Whether the static scheduler decides at a clock in place of who learns."""
    return clock * GOLDEN % 1.0 < c.hybrid


@njit_inlined
def line_up(e: Episodes, episode: int, plan: Plan, shortest: bool) -> int:
    """Writes the consumers that wait to ``plan.order``; returns how many."""
    at = e.of[episode]
    for k in range(at.num_waiting):
        consumer, place = e.waiting[at.row + k], k
        left = e.agent[at.row + consumer].left
        while shortest and place > 0 and e.agent[at.row + plan.order[place - 1]].left > left:
            plan.order[place] = plan.order[place - 1]
            place -= 1
        plan.order[place] = consumer
    return at.num_waiting


@njit_inlined
def give(
    c: Cloud, jobs: Jobs, e: Episodes, episode: int, consumer: int, plan: Plan, n: int
) -> None:
    """Gives a consumer the first n nodes of the plan, and lets it start if they satisfy it."""
    for k in range(n):
        catch(c, e, episode, consumer, plan.nodes[k])
    at = e.of[episode]
    agent, nodes = e.agent[at.row + consumer], e.held[at.row + consumer, :n]
    if satisfy(c, jobs, at.first + consumer, nodes, agent.held_cores, agent.held_memory):
        start(c, jobs, e, episode, consumer)
    else:
        let_all_go(e, episode, consumer)  # they stand apart, which the consumer does not allow


@njit_inlined
def own_picks(c: Cloud, plan: Plan, k: int) -> int:
    """Writes to ``plan.nodes`` what the k-th consumer got when all picked in turn; how many."""
    count = 0
    for node in range(c.type.size):
        if plan.owner[node] == k and not plan.out[k]:
            plan.nodes[count] = node
            count += 1
    return count


@njit_inlined
def sink(plan: Plan, place: int, end: int) -> None:
    """Moves a consumer in ``plan.order`` behind all with higher scores, up to an end."""
    consumer, score = plan.order[place], plan.score[place]
    while place + 1 < end and plan.score[place + 1] > score:
        plan.order[place], plan.score[place] = plan.order[place + 1], plan.score[place + 1]
        place += 1
    plan.order[place], plan.score[place] = consumer, score


@njit_inlined
def start_pairs(c: Cloud, jobs: Jobs, e: Episodes, episode: int, n: int, plan: Plan) -> None:
    """Starts the pair with the highest score, again and again, as long as there is one above 0.

    A score can but fall when others take nodes, so that only the first one is worked out anew.
    """
    free = free_work(c, e, episode)
    count_wanted(jobs, e, episode, plan)
    rest, first = n, 0 * n  # places from `rest` on are in order; the others have no score yet
    while first < n:
        place = rest - 1 if rest > 0 else first
        consumer, before = plan.order[place], plan.score[place]
        score, count = best_plan(c, jobs, e, episode, consumer, plan, free, n)
        plan.score[place] = score
        if rest > 0:
            sink(plan, place, n)
            rest -= 1
        elif score < before:
            sink(plan, place, n)
        elif score > 0.0:
            give(c, jobs, e, episode, consumer, plan, count)
            first += 1
        else:
            first = n  # nobody else has a higher one


@njit_inlined
def decide(
    c: Cloud, jobs: Jobs, e: Episodes, episode: int, choice: int, n: int, plan: Plan, key: np.uint64
) -> None:
    """Decides for the n consumers that wait, at one instant.

    Picking in turn knows no places. Where nodes must stand in one, what is left after the turn is
    given by best fit.
    """
    plan.taken[:] = False
    for k in range(n):
        let_all_go(e, episode, plan.order[k])  # what it held when it lost another node
    if choice == ENVY_FREE:
        share_out(c, jobs, e, episode, n, plan)
    if choice == SCORED:
        start_pairs(c, jobs, e, episode, n, plan)
        return
    now = e.of[episode].time
    for turn in range(2 if choice == ENVY_FREE and c.strict else 1):
        for k in range(n):
            consumer, clock = plan.order[k], now
            if e.agent[e.of[episode].row + consumer].stage != WAITING:
                continue
            if choice == EARLIEST_FINISH:
                count, clock = finish_early(c, jobs, e, episode, consumer, plan)
            elif choice == ENVY_FREE and turn == 0:
                count = own_picks(c, plan, k)
            else:
                how = choice if choice <= RANDOM else np.int64(BEST_FIT)
                own = key + np.uint64(1 + now) * _MIX + (np.uint64(consumer) << np.uint64(32))
                count = fit(c, jobs, e, episode, consumer, plan, how, own)
            if count and clock == now:
                give(c, jobs, e, episode, consumer, plan, count)
            elif count:
                for i in range(count):
                    plan.taken[plan.nodes[i]] = True
