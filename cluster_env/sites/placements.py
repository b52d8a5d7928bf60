"""Which nodes jobs hold, and what a calendar says of the future at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.sites.description import Site

_FAR = 2**40  # seconds, behind the end of any clock


class Placements(NamedTuple):
    """Nodes of jobs, one job after the other."""

    first: NDArray[np.int64]  # (num_jobs + 1,), where those of each begin
    node: NDArray[np.int32]  # places among the site's nodes
    size: NDArray[np.int32]  # processors on each

    @classmethod
    def of(cls, jobs: Sequence[Mapping[int, int]]) -> "Placements":
        """From the processors of each job by the places of its nodes."""
        pairs = [pair for nodes in jobs for pair in nodes.items()]
        node, size = np.array(pairs, np.int32).reshape(-1, 2).T
        return cls(np.cumsum([0, *map(len, jobs)]).astype(np.int64), node, size)

    def select(self, jobs: NDArray[np.int64]) -> "Placements":
        """Those of some jobs, int64 ``(m,)``."""
        begin, count = self.first[jobs], np.diff(self.first)[jobs]
        first = np.concatenate([[0], np.cumsum(count)])
        rows = np.repeat(begin - first[:-1], count) + np.arange(first[-1])
        return Placements(first, self.node[rows], self.size[rows])


def known_at(site: Site, time: int) -> Site:
    """The site as it is known at a time: without what only the future brings.

    Of a failure that lasts, it is known when it ends. Entries of the calendar keep their places,
    because jobs refer to them.
    """
    calendar = []
    for one in site.calendar:
        fails = one.kind == "failure"
        known = one.start <= time < one.end if fails else one.known_from <= time
        away = replace(one, kind="planned", start=_FAR, end=_FAR + 1, known_from=0)
        calendar.append(one if known else away)
    return replace(site, calendar=tuple(calendar))


def without_failures(site: Site) -> Site:
    """The site where no node fails."""
    calendar = tuple(
        replace(one, kind="planned", start=_FAR, end=_FAR + 1) if one.kind == "failure" else one
        for one in site.calendar
    )
    return replace(site, calendar=calendar)
