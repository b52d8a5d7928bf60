"""Ray's command line, for nodes that stay on loopback too.

``ray start`` takes 127.0.0.1 for a name of this machine, and listens on its address in the network
instead. Told that there are no clusters here (RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0, whatever the
system), Ray stays on loopback, but then refuses to start workers. Here it does both.
"""

import os
import sys

from ray._private import ray_constants, services
from ray.scripts.scripts import main

if os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER") == "0":
    services.get_node_ip_address = lambda address=None: "127.0.0.1"
    ray_constants.ENABLE_RAY_CLUSTER = True

if __name__ == "__main__":
    sys.exit(main())
