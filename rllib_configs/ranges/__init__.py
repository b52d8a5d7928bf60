"""What differs from task to task in a family; needs neither Ray nor PyTorch."""

from rllib_configs.ranges.by_key import RANGES, Ranges, ranges_of

__all__ = ["RANGES", "Ranges", "ranges_of"]
