#!/bin/sh
# Succeeds if Ray on this node is well: the agent of the node asks its raylet, and on a head the GCS.
#
#   METASCHED_AGENT_PORT   where the agent listens, 52365 unless set
#
# The agent tells this without a token, and listens on loopback wherever else it does.
set -eu
. "$(dirname "$0")/common.sh"
answers 127.0.0.1 "${METASCHED_AGENT_PORT:-52365}" /api/healthz
