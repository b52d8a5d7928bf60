"""What happens at one instant before anybody decides, in a pool and at a site alike.

Jobs finish, at a site its calendar changes, then expected ends that have passed are put off, then
jobs enter the queue. After that somebody decides which of the waiting jobs start: a policy, a rule
or a scorer.
"""

import numpy as np

from cluster_env.core.compiled import njit_called_where, njit_either, njit_inlined
from cluster_env.worlds.hpc.events import (
    HALF_LIFE_S,
    Episode,
    begin,
    count_arrival,
    fade,
    learn_ended,
    next_of_jobs,
    note_arrival,
    pop,
    predict_entering,
    raise_outlived,
)
from cluster_env.worlds.hpc.jobs import NOBODY
from cluster_env.worlds.hpc.queue import enter
from cluster_env.worlds.hpc.reservations import starts_at_once
from cluster_env.worlds.hpc.running import vacate
from cluster_env.worlds.hpc.site.calendar import (
    change_calendar,
    clear_site,
    come_to_site,
    next_at_site,
    tell_followers,
)
from cluster_env.worlds.hpc.site_holding import count_free


@njit_inlined
def _clear_pool(episode: Episode) -> None:
    """Puts an episode back to where nothing has happened yet."""
    begin(episode)
    status = episode.status[0]
    for r in range(episode.free.size):
        episode.free[r] = episode.capacity[r]
    for job in range(episode.last_alike.size):
        episode.last_alike[job] = NOBODY
    status.behind, status.oldest = 0, 0


@njit_inlined
def _half_life_in_pool(episode: Episode) -> float:
    """Seconds in which what users have used fades by half."""
    return float(HALF_LIFE_S)


@njit_inlined
def _half_life_at_site(episode: Episode) -> float:
    return float(episode.site.layout.half_life)


@njit_inlined
def _tell_nobody(episode: Episode, job: int, now: int) -> None:
    """Notes that a job has ended, and lets those know that wait for its end."""


@njit_inlined
def _tell_others(episode: Episode, job: int, now: int) -> None:
    episode.site.finish[job] = now
    tell_followers(episode, job, now)


@njit_inlined
def _keep_calendar(episode: Episode, now: int) -> None:
    """Lets all of the calendar happen that does up to now."""


@njit_inlined
def _come_to_pool(episode: Episode, now: int) -> int:
    """The next job that enters the queue now, -1 for none."""
    status, job = episode.status[0], np.int64(NOBODY)
    if status.coming < episode.jobs.size and episode.jobs[status.coming].arrival == now:
        job = np.int64(status.coming)
        status.coming += 1
    return int(job)


@njit_inlined
def _note_in_pool(episode: Episode, job: int, now: int) -> bool:
    """Keeps what states show of its arrival; returns whether it is the first one of the job."""
    note_arrival(episode, job, episode.status[0].tail - episode.status[0].head, now)
    return True


@njit_inlined
def _note_at_site(episode: Episode, job: int, now: int) -> bool:
    if episode.at_arrival.shape[0] > 0:
        count_free(episode)
        note_arrival(episode, job, episode.status[0].tail - episode.status[0].head, now)
    return bool(episode.site.cuts[job] == 0)


@njit_inlined
def _never_at_once(episode: Episode, job: int, now: int) -> bool:
    return False


clear = njit_either(_clear_pool, clear_site, "site")
next_event = njit_either(next_of_jobs, next_at_site, "site")
_half_life = njit_either(_half_life_in_pool, _half_life_at_site, "site")
_tell = njit_either(_tell_nobody, _tell_others, "site")
_change_calendar = njit_either(_keep_calendar, change_calendar, "site")
_come = njit_either(_come_to_pool, come_to_site, "site")
_starts_at_once = njit_either(starts_at_once, _never_at_once, "site")
_note = njit_either(_note_in_pool, _note_at_site, "site")


@njit_called_where("site")
def advance(episode: Episode, now: int) -> None:
    """Lets all happen that happens at one instant before anybody decides."""
    status, order = episode.status[0], episode.order
    _finish_jobs(episode, now)
    _change_calendar(episode, now)
    if order.tracks and status.running > 0 and episode.expected[status.running - 1] <= now:
        raise_outlived(episode, now)
        status.holds = False
    # Jobs enter the queue.
    status.new_jobs = 0
    job = np.int64(_come(episode, now))
    while job >= 0:
        if status.model > 0:
            predict_entering(episode, job)
        if order.counts:
            new = _note(episode, job, now)
            count_arrival(episode, job, now, new)
        if not _starts_at_once(episode, job, now):
            enter(episode, job)
        job = np.int64(_come(episode, now))


@njit_inlined
def _finish_jobs(episode: Episode, now: int) -> None:
    """Lets all jobs finish that end now; before that, what users have used fades."""
    status, before = episode.status[0], episode.status[0].running
    if before > 0 and episode.order.shares and episode.ends[0] <= now:
        fade(episode, now, _half_life(episode))
    while status.running > 0 and episode.ends[0] == now:
        job = np.int64(pop(episode.ends, episode.running, status.running))
        vacate(episode, job, now)
        _tell(episode, job, now)
        episode.running[status.running] = job  # see `learn_ended`
    if status.model > 0:
        learn_ended(episode, before)
