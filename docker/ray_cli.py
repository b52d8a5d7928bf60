"""Ray's command line, for nodes that stay on loopback too.

``ray start`` takes 127.0.0.1 for a name of this machine, and listens on its address in the network
instead. Told that there are no clusters here (RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0, whatever the
system), Ray stays on loopback, but then refuses to start workers. Here it does both.

A head whose processes were killed can start again at once. ``ray start`` takes any process for a
running head that was once told its address, and so the workers of the old one, which need a minute
to notice; here only a head counts that answers.
"""

import os
import socket
import sys

from ray._private import ray_constants, services
from ray.scripts.scripts import main

_find_addresses = services.find_gcs_addresses


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError):
        return False
    return True


def _find_those_that_answer() -> frozenset[str]:
    return frozenset(filter(_answers, _find_addresses()))


_find_those_that_answer.cache_clear = _find_addresses.cache_clear
services.find_gcs_addresses = _find_those_that_answer

if os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER") == "0":
    services.get_node_ip_address = lambda address=None: "127.0.0.1"
    ray_constants.ENABLE_RAY_CLUSTER = True

if __name__ == "__main__":
    sys.exit(main())
