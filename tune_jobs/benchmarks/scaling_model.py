"""What an iteration costs with any number of runners, from what calls cost in a few.

With u units for each runner, on m machines with r runners each, an iteration with k rounds (one for
REINFORCE, one more for each update of PPO) takes

    T = u t + k (a + h + m c + r s)

t is what a unit takes where it is done, all rounds together; a what a round takes whoever is asked:
the learner's step, and a call there and back; h the way through a station; c the CPU time that the
driver spends on each machine: a call, its answer, and the addition of gradients; s what a station
spends on each runner, likewise. What runners do, they do side by side, and so do stations. Runners
that the driver calls itself are machines with r = 0, and take no h.

Stand-ins and their stations all share the cores of one machine. There a round takes

    a + h + (m c + n s + n p) / cores

with n = m r stand-ins, each of which spends p on its answer. That is how the costs are checked.
"""

from dataclasses import dataclass

PER_MACHINE = 32
"""Runners of a machine, where it is not said."""


@dataclass(frozen=True)
class Layout:
    """Where runners are.

    Attributes:
        machines: m.
        runners: r, of each machine; 0: the driver calls as many single runners as machines.
    """

    machines: int
    runners: int = 0

    @property
    def total(self) -> int:
        """Number of runners."""
        return self.machines * max(1, self.runners)

    @staticmethod
    def of(runners: int, per_machine: int = PER_MACHINE) -> "Layout":
        """So many runners on as few machines as hold them."""
        if runners == 1:
            return Layout(1)
        machines = -(-runners // per_machine)
        return Layout(machines, -(-runners // machines))


@dataclass(frozen=True)
class Costs:
    """The measured costs; see the formulas above.

    Attributes:
        unit_s: t.
        unit_decisions: decisions of a unit.
        rounds: k.
        round_s: a.
        hop_s: h.
        machine_s: c.
        runner_s: s.
        answer_s: p.
    """

    unit_s: float
    unit_decisions: float
    rounds: int
    round_s: float
    hop_s: float
    machine_s: float
    runner_s: float
    answer_s: float

    def seconds(self, layout: Layout, units: int = 1) -> float:
        """Of an iteration, with so many units for each runner."""
        spent = layout.machines * self.machine_s + layout.runners * self.runner_s
        return units * self.unit_s + self.rounds * (self._way_s(layout) + spent)

    def crowded_seconds(self, layout: Layout, cores: int) -> float:
        """Of an iteration of stand-ins on one machine, with a unit for each."""
        each = self.answer_s + (self.runner_s if layout.runners else 0.0)
        spent = layout.machines * self.machine_s + layout.total * each
        return self.unit_s + self.rounds * (self._way_s(layout) + spent / cores)

    def decisions_per_s(self, runners: int, units: int = 1) -> float:
        """Of so many runners together."""
        return runners * units * self.unit_decisions / self.seconds(Layout.of(runners), units)

    def speedup(self, runners: int, units: int = 1) -> float:
        """How many times the decisions a second of one runner."""
        return self.decisions_per_s(runners, units) / self.decisions_per_s(1, units)

    def _way_s(self, layout: Layout) -> float:
        return self.round_s + (self.hop_s if layout.runners else 0.0)
