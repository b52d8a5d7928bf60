#!/bin/sh
# Joins a Ray cluster as a worker and stays in the foreground until the head is gone.
#
#   METASCHED_HEAD             HOST:PORT of the head
#   METASCHED_WORKER_CPUS      CPUs for runners and learners, those of the machine unless set
#   METASCHED_OBJECT_STORE     bytes of the object store, 1 GiB unless set
#   METASCHED_AGENT_PORT       where check-ray.sh asks, 52365 unless set
#
# Arguments go on to ray start, as --temp-dir where several nodes share a machine.
set -eu
. "$(dirname "$0")/common.sh"
check_auth
[ -n "${METASCHED_HEAD:-}" ] || fail "METASCHED_HEAD must say HOST:PORT of the head"
copy_source
exec python "$(dirname "$0")/ray_cli.py" start --block --disable-usage-stats \
  --address="$METASCHED_HEAD" \
  --node-ip-address="$METASCHED_HOST" \
  --num-cpus="${METASCHED_WORKER_CPUS:-$(nproc)}" \
  --object-store-memory="${METASCHED_OBJECT_STORE:-1073741824}" \
  --dashboard-agent-listen-port="${METASCHED_AGENT_PORT:-52365}" \
  "$@"
