"""Advantages over the times at which something is decided, jobset by jobset, compiled.

Time may run for a week in seconds: nothing here is as long as the clock.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit


class Events(NamedTuple):
    """The events of all trajectories, one trajectory after the other, each in order of time."""

    first: NDArray[np.int64]  # (trajectories + 1,), where the events of each begin
    of_row: NDArray[np.int64]  # (rows,)
    time: NDArray[np.int64]  # (events,), as the next
    value: NDArray[np.float64]
    delta: NDArray[np.float64]


@njit(cache=True)
def advantages_of_events(
    rewards: NDArray[np.float64],
    values: NDArray[np.float64],
    episode: NDArray[np.int32],
    time: NDArray[np.integer[Any]],
    jobset: NDArray[np.int32],
    gamma: float,
    trace: float,
    per_decision: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The kernel of `rllib_configs.learning.advantages.advantages_by_clock`, which see."""
    events = _events_of(rewards, values, episode, time, jobset.size, gamma, per_decision)
    advantage = np.zeros(events.time.size)
    target = np.zeros(events.time.size)
    members = np.argsort(jobset, kind="mergesort")  # stable: sums run in the order of trajectories
    first = 0
    while first < members.size:
        stop = first
        while stop < members.size and jobset[members[stop]] == jobset[members[first]]:
            stop += 1
        group = members[first:stop]
        if per_decision:
            _by_decision(events, group, gamma * trace, advantage, target)
        else:
            _by_time(events, group, gamma * trace, advantage, target)
        first = stop
    advantages = np.empty(rewards.size)
    targets = np.empty(rewards.size)
    for row in range(rewards.size):
        i = events.of_row[row]
        advantages[row] = advantage[i] + events.value[i] - values[row]
        targets[row] = target[i] + events.value[i]
    return advantages, targets


@njit(cache=True)
def _events_of(
    rewards: NDArray[np.float64],
    values: NDArray[np.float64],
    episode: NDArray[np.int32],
    time: NDArray[np.integer[Any]],
    num_episodes: int,
    gamma: float,
    per_decision: bool,
) -> Events:
    """Draws the rows of one time together, and takes their errors."""
    first = np.zeros(num_episodes + 1, np.int64)
    last_time = np.full(num_episodes, -1, np.int64)
    for row in range(rewards.size):
        if time[row] != last_time[episode[row]]:
            first[episode[row] + 1] += 1
            last_time[episode[row]] = time[row]
    first = np.cumsum(first)
    of_row = np.empty(rewards.size, np.int64)
    when = np.full(first[-1], -1, np.int64)
    reward = np.zeros(when.size)
    value = np.zeros(when.size)
    place = first[1:].copy()
    for row in range(rewards.size - 1, -1, -1):
        e = episode[row]
        if place[e] == first[e + 1] or when[place[e]] != time[row]:
            place[e] -= 1
            when[place[e]] = time[row]
        of_row[row] = place[e]
        reward[place[e]] += rewards[row]
        value[place[e]] = values[row]  # of the first row, which comes last here
    delta = np.empty(when.size)
    for e in range(num_episodes):
        for i in range(first[e], first[e + 1]):
            following = 0.0
            if i + 1 < first[e + 1]:
                discount = gamma if per_decision else gamma ** float(when[i + 1] - when[i])
                following = discount * value[i + 1]
            delta[i] = reward[i] + following - value[i]
    return Events(first, of_row, when, value, delta)


@njit(cache=True)
def _by_time(
    events: Events,
    group: NDArray[np.int64],
    rate: float,
    advantage: NDArray[np.float64],
    target: NDArray[np.float64],
) -> None:
    """Walks each trajectory of a jobset back over the times at which any of them has an event."""
    clock = _clock_of(events, group)
    decay = np.empty(clock.size)
    for t in range(clock.size):
        # The power 1 is the number itself, so that a step of 1 rounds as a plain product does.
        decay[t] = rate ** float(clock[t + 1] - clock[t]) if t + 1 < clock.size else rate
    total = np.zeros(clock.size)
    for e in group:
        for i in range(events.first[e], events.first[e + 1]):
            total[np.searchsorted(clock, events.time[i])] += events.delta[i]
    for e in group:
        i = events.first[e + 1] - 1
        ahead, ahead_target = 0.0, 0.0
        for t in range(clock.size - 1, -1, -1):
            own = i >= events.first[e] and events.time[i] == clock[t]
            delta = events.delta[i] if own else 0.0
            alone = delta - (total[t] - delta) / (group.size - 1.0)
            ahead = alone + decay[t] * ahead
            ahead_target = delta + decay[t] * ahead_target
            if own:
                advantage[i] = ahead
                target[i] = ahead_target
                i -= 1


@njit(cache=True)
def _by_decision(
    events: Events,
    group: NDArray[np.int64],
    rate: float,
    advantage: NDArray[np.float64],
    target: NDArray[np.float64],
) -> None:
    """Discounts each trajectory of a jobset by its own events, then subtracts the others."""
    clock = _clock_of(events, group)
    total = np.zeros(clock.size)
    for e in group:
        i = events.first[e + 1] - 1
        ahead = 0.0
        for t in range(clock.size - 1, -1, -1):
            if i >= events.first[e] and events.time[i] == clock[t]:
                ahead = events.delta[i] + rate * ahead
                target[i] = ahead
                i -= 1
            total[t] += ahead
    for e in group:
        for i in range(events.first[e], events.first[e + 1]):
            together = total[np.searchsorted(clock, events.time[i])]
            advantage[i] = target[i] - (together - target[i]) / (group.size - 1.0)


@njit(cache=True)
def _clock_of(events: Events, group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times at which any of the trajectories has an event, rising."""
    count = 0
    for e in group:
        count += events.first[e + 1] - events.first[e]
    times = np.empty(count, np.int64)
    count = 0
    for e in group:
        for i in range(events.first[e], events.first[e + 1]):
            times[count] = events.time[i]
            count += 1
    return np.unique(times)
