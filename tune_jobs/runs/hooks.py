"""Functions of a user's own that see each iteration, such as for W&B or TensorBoard."""

import logging
from pathlib import Path

from rllib_configs.config.registries import HOOKS
from tune_jobs.runs.history import MetricRow

logger = logging.getLogger(__name__)


class Hooks:
    """Calls all hooks; one that raises an error is off from then on, and training goes on."""

    def __init__(self) -> None:
        self._hooks = {name: HOOKS.get(name) for name in HOOKS.names()}

    def on_iteration(self, row: MetricRow, run: Path) -> None:
        """Calls each with a row of its own; see `rllib_configs.config.registries.HOOKS`."""
        for name, hook in list(self._hooks.items()):
            try:
                hook(dict(row), run)
            except Exception as error:  # whatever the code of others raises
                del self._hooks[name]
                why = f"{type(error).__name__}: {error}"
                logger.warning("the hook %s failed and is off now (%s).", name, why)
