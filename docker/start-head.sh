#!/bin/sh
# Starts the head of a Ray cluster with its dashboard, which takes jobs, and stays in the foreground.
#
#   METASCHED_RAY_PORT         where workers join, 6379 unless set
#   METASCHED_DASHBOARD_PORT   where jobs are submitted, 8265 unless set
#   METASCHED_HEAD_CPUS        CPUs of the head for runners, 0 unless set: it has drivers to run
#   METASCHED_OBJECT_STORE     bytes of the object store, 1 GiB unless set
#   METASCHED_AGENT_PORT       where check-ray.sh asks, 52365 unless set
#
# Arguments go on to ray start, as --temp-dir where several nodes share a machine.
set -eu
. "$(dirname "$0")/common.sh"
check_auth
copy_source
exec python "$(dirname "$0")/ray_cli.py" start --head --block --disable-usage-stats \
  --node-ip-address="$METASCHED_HOST" \
  --port="${METASCHED_RAY_PORT:-6379}" \
  --dashboard-host="$METASCHED_HOST" \
  --dashboard-port="${METASCHED_DASHBOARD_PORT:-8265}" \
  --num-cpus="${METASCHED_HEAD_CPUS:-0}" --num-gpus=0 \
  --object-store-memory="${METASCHED_OBJECT_STORE:-1073741824}" \
  --dashboard-agent-listen-port="${METASCHED_AGENT_PORT:-52365}" \
  "$@"
