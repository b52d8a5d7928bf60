"""Who does which unit: work that is taken as runners come free."""

from collections.abc import Iterable, Mapping, Sequence


class Lanes:
    """Places of units that are to be done, in a lane for each runner.

    A runner takes from the front of its lane, half of what is left at a time, so that the last
    pieces are small. One whose lane is empty takes half of the longest one, from its back. With
    lanes that are neighbors from end to end, what a runner does stays in few pieces.

    Args:
        lanes: places by runner.
        fixed: whether a lane is taken whole, and by its own runner alone.
    """

    def __init__(self, lanes: Mapping[int, Sequence[int]], fixed: bool = False) -> None:
        self._lanes = {runner: list(places) for runner, places in lanes.items()}
        self._fixed = fixed

    @staticmethod
    def even(places: Sequence[int], widths: Mapping[int, int]) -> "Lanes":
        """Cuts places into runs of neighbors, as long as those who do them are wide.

        Args:
            places: in order.
            widths: how much each runner does at a time, by runner.
        """
        count, whole = len(places), max(1, sum(widths.values()))
        lanes, before = {}, 0
        for runner, width in widths.items():
            after = before + width
            lanes[runner] = places[count * before // whole : count * after // whole]
            before = after
        return Lanes(lanes or {0: places})

    def take(self, runner: int, least: int = 1) -> tuple[int, ...]:
        """What a runner is to do next; nothing if there is nothing left for it.

        Args:
            runner: who asks.
            least: number of places that it takes, if there are as many.
        """
        own = self._lanes.get(runner, [])
        if self._fixed:
            self._lanes[runner] = []
            return tuple(own)
        if own:
            number = max(-(-len(own) // 2), least)
            self._lanes[runner] = own[number:]
            return tuple(own[:number])
        longest = max(self._lanes.values(), key=len, default=[])
        left = max(0, min(len(longest) // 2, len(longest) - least))
        taken = longest[left:]
        del longest[left:]
        return tuple(taken)

    @property
    def empty(self) -> bool:
        """Whether all has been taken."""
        return not any(self._lanes.values())

    def give_back(self, places: Iterable[int], lost: int, left: Sequence[int]) -> None:
        """Spreads what a lost runner had been given, and what it had not yet, over those left.

        Args:
            places: that it had been given.
            lost: the runner.
            left: runners that there still are; without any, its own lane keeps them.
        """
        for place in [*places, *self._lanes.pop(lost, [])]:
            lane = min(left, key=lambda runner: len(self._lanes.get(runner, [])), default=lost)
            self._lanes.setdefault(lane, []).append(place)

    def rest(self) -> tuple[int, ...]:
        """Takes all that is left, in order."""
        found = sorted(place for lane in self._lanes.values() for place in lane)
        self._lanes.clear()
        return tuple(found)
