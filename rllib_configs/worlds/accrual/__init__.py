"""What the accrual world adds: servers that learn the values of their states as they schedule."""

from rllib_configs.worlds.accrual.plain import plain_experiment
from rllib_configs.worlds.accrual.servers import (
    COLUMNS,
    POLICIES,
    Learning,
    Outcome,
    Setting,
    experiment,
    learn_values,
    measure,
)

__all__ = [
    "COLUMNS",
    "POLICIES",
    "Learning",
    "Outcome",
    "Setting",
    "experiment",
    "learn_values",
    "measure",
    "plain_experiment",
]
