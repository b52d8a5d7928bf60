"""Experiments: data files that say which runs, comparisons and figures make a result."""
