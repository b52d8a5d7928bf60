#!/bin/sh
# Succeeds if the cluster of this node answers: METASCHED_HEAD, or this machine if that is unset.
set -eu
. "$(dirname "$0")/common.sh"
exec python "$(dirname "$0")/ray_cli.py" health-check \
  --address "${METASCHED_HEAD:-$METASCHED_HOST:${METASCHED_RAY_PORT:-6379}}"
