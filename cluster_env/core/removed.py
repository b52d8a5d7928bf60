"""Names of rules, presets and options that are gone, and what to use instead."""

REMOVED = {
    "saf-strict": "take saf:strict",
    "wspt-strict": "take wspt:strict",
    "sjf-skip": "take sjf:skip",
    "rls": "compare --protocol rlscheduler has its windows; take sjf:easy",
    "rls_easy": "compare --protocol rlscheduler has its windows; take sjf:easy",
    "scheduling_pass": "jobs start when all events of a second are over; leave it out",
    "learned": "take mixed",
    "reserve": "on real logs no rule did worse; take saf:easy",
}
"""By name. A message says that the name was removed in 0.3, and then this."""
