"""What figures of DeepRM's world show: the paper's loads, and the heuristics of single figures."""

WORLD = "deeprm"

LOADS = tuple(percent / 100 for percent in range(10, 191, 20))
"""Figure 4's. Its 190 % means a job in every step, which is a load of 184.5 %."""

WITHHOLDING = ("sjf", "tetris", "hold")
"""Heuristics of figure 7."""

IN_HINDSIGHT = ("packer", "sjf", "tetris", "hold")
"""Heuristics that are compared with the best schedules; random ones lie far away."""

GUARD_LOADS = (0.3, 0.7, 1.1, 1.5)
GUARD_JOBS = ((50, 0.8), (50, 0.6), (200, 0.8), (200, 0.6), (500, 0.8))
"""Arrival windows, in time steps, with shares of short jobs; each is measured at all loads."""

STEPS_PER_WINDOW = 10
"""How many times as long as their window these episodes may be at least."""
