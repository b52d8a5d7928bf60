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
    def even(count: int, runners: Sequence[int]) -> "Lanes":
        """Cuts the places from 0 to `count` into runs of nearly equal length."""
        parts = len(runners)
        return Lanes(
            {
                runner: range(count * k // parts, count * (k + 1) // parts)
                for k, runner in enumerate(runners)
            }
        )

    def take(self, runner: int) -> tuple[int, ...]:
        """What a runner is to do next; nothing if there is nothing left for it."""
        own = self._lanes.get(runner, [])
        if self._fixed:
            self._lanes[runner] = []
            return tuple(own)
        if own:
            half = -(-len(own) // 2)
            self._lanes[runner] = own[half:]
            return tuple(own[:half])
        longest = max(self._lanes.values(), key=len, default=[])
        taken = longest[len(longest) // 2 :]
        del longest[len(longest) // 2 :]
        return tuple(taken)

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
