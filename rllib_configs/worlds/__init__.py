"""What networks have for one world alone: networks of its own, and fast paths of others."""

import rllib_configs.worlds.accrual.options
import rllib_configs.worlds.deeprm.options  # noqa: F401  likewise
