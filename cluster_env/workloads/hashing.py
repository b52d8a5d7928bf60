"""Names of users and accounts behind hashes, so that tables and schedules can leave the site."""

import hashlib
import os
import secrets
from dataclasses import replace
from functools import lru_cache

import numpy as np

from cluster_env.workloads.recorded import RecordedJobs

KEY = "METASCHED_HASH_KEY"
"""Environment variable with the key; the same key gives the same hashes."""

HASHED = ("user", "group")
"""Which names are hashed. Queues are no persons."""


def hashed(jobs: RecordedJobs) -> RecordedJobs:
    """The same jobs, whose users and groups have names like ``user-3f1c09a2b7``.

    The hash is keyed (BLAKE2b), because whoever knows the names of a site could try them all
    otherwise. Without `KEY` in the environment a process draws a key and forgets it. All numbers
    stay the same.
    """
    names = {
        name: np.array([hashed_name(name, str(text)) for text in values])
        if name in HASHED
        else values
        for name, values in jobs.names.items()
    }
    return replace(jobs, names=names)


def hashed_name(name: str, text: str) -> str:
    """A name behind a hash, as `hashed` has it: ``user-3f1c09a2b7`` of a ``user``."""
    if not text:  # nobody's name: the log does not know it
        return text
    digest = hashlib.blake2b(text.encode(), key=_key(os.environ.get(KEY, "")), digest_size=5)
    return f"{name}-{digest.hexdigest()}"


@lru_cache  # so that a process without a key of the user's own draws one, once
def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest() if text else secrets.token_bytes(32)
