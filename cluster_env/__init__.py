"""The world of metasched: clusters, jobs, simulators, heuristics and metrics.

This package needs neither Ray nor Torch: it can be installed and used as a plain Gymnasium
environment library. Importing it registers the environments with Gymnasium.
"""

import cluster_env.worlds  # noqa: F401  registers them
