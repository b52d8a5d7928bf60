"""What is asked of a site: one look at it, and the few things that can be done to its queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rllib_configs.snapshot import Snapshot


@dataclass(frozen=True)
class Site:
    """What does not change while it is watched.

    Attributes:
        name: of the cluster and its controller.
        with_memory: whether it counts memory.
        ranks: whether it starts jobs by priorities that can be set.
        operator: account that may do everything there.
        with_limits: whether it keeps to the limits of QOS and associations.
    """

    name: str
    with_memory: bool = False
    ranks: bool = True
    operator: str = ""
    with_limits: bool = False


class Backend(Protocol):
    """A site. Whatever fails because it does not answer raises `SiteAway`."""

    def site(self) -> Site:
        """What it is."""

    def read(self) -> Snapshot:
        """Its jobs and nodes now."""

    def start(self, jobs: Sequence[str]) -> list[str]:
        """Releases jobs, so that it starts them; returns an error of each refused command."""

    def hold(self, jobs: Sequence[str]) -> list[str]:
        """Takes that back where they have not started; returns the same."""

    def rank(self, priorities: Sequence[tuple[str, int]]) -> None:
        """Sets priorities, one after the other; the higher, the earlier."""
