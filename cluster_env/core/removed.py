"""What is gone by its name, and what to use instead."""

_HELD = "it held jobs back, which does harm on most real logs; take hpc-order"
_PEER = "the tests repeat its loop; take sjf:easy, and compare --protocol rlscheduler"
_RECORDED = "commit c7fb3903 recorded what it made"

REMOVED = {
    **dict.fromkeys(("hpc-hold", "hpc-hold-limits", "hpc-limits", "hpc-capability"), _HELD),
    **dict.fromkeys(("hpc-universal", "hpc-no-worse"), _HELD),
    **dict.fromkeys(("experiment hpc", "experiment hpc-limits"), _RECORDED),
    **dict.fromkeys(("rls", "rls_easy"), _PEER),
    "saf-strict": "take saf:strict",
    "wspt-strict": "take wspt:strict",
    "sjf-skip": "take sjf:skip",
    "reserve": "on real logs no rule did worse; take saf:easy",
    "gate": "take skip",
    "gated_easy": "take easy",
    "family of jobsets capability": "take any-site",
    "run-time correction learned": "take mixed",
    "scheduling_pass": "jobs start when all events of a second are over",
}
"""By name, or by what it is and its name."""


def was_removed(kind: str, name: str) -> str | None:
    """A sentence on a name that is gone; None for any other."""
    stem = name.partition(":")[0]
    instead = REMOVED.get(f"{kind} {stem}") or REMOVED.get(stem)
    return instead and f"the {kind} '{name}' was removed in 0.3: {instead}"
