"""The names of `tune_jobs.tables.columns` for modules that are not yet moved to it."""

from tune_jobs.tables.columns import COUNT, RATIO, SECONDS, SHARE, shown

__all__ = ["COUNT", "RATIO", "SECONDS", "SHARE", "shown"]
