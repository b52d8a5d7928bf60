"""What networks have for one world alone: networks of its own."""

import rllib_configs.worlds.accrual.options
import rllib_configs.worlds.deeprm.options
import rllib_configs.worlds.graphs.options
import rllib_configs.worlds.hpc.options
import rllib_configs.worlds.panda.options  # noqa: F401  each enters its own
