"""How long somebody may take to answer."""

from rllib_configs.runners.requests import Answer


class Patience:
    """How long a call may take, by what units have taken so far.

    Args:
        timeout_s: a fixed limit in seconds; 0 derives one.
    """

    FACTOR = 10.0
    LEAST_S = 120.0  # a machine may be busy with something else
    FIRST_S = 600.0  # before the first answer; a runner may have to compile
    STATION = 2.0  # a station may have to wait for a runner, and then has to do its work again

    def __init__(self, timeout_s: float = 0.0) -> None:
        self._timeout_s = timeout_s
        self._unit_s = 0.0

    def observe(self, answer: Answer) -> None:
        """Learns from an answer."""
        self._unit_s = max(self._unit_s, answer.unit_s)

    def limit_s(self, num_units: int, width: int = 0) -> float:
        """Seconds after which nobody waits any longer.

        Args:
            num_units: that were asked for.
            width: how many runners of a station share them; 0 for a runner itself.
        """
        if width:
            return self.STATION * self.limit_s(-(-num_units // width))
        if self._timeout_s:
            return self._timeout_s
        if not self._unit_s:
            return self.FIRST_S
        return max(self.LEAST_S, self.FACTOR * self._unit_s * num_units)
