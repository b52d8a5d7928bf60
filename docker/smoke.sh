#!/bin/sh
# Starts the compose file with two workers, runs the README's commands inside, and removes
# everything again. It needs Docker with compose, and takes some minutes, most of them to build.
#
#   docker/smoke.sh            # KEEP=1 docker/smoke.sh leaves the containers running
set -eu
cd "$(dirname "$0")/.."
RAY_AUTH_TOKEN="${RAY_AUTH_TOKEN:-$(openssl rand -hex 32)}"
POSTGRES_PASSWORD="${POSTGRES_PASSWORD:-$(openssl rand -hex 32)}"
export RAY_AUTH_TOKEN POSTGRES_PASSWORD

compose() {
  docker compose --project-name metasched-smoke --file docker/compose.yaml "$@"
}

if [ -z "${KEEP:-}" ]; then
  trap 'compose down --volumes --remove-orphans' EXIT
fi
compose up --build --detach --wait --scale worker=2
compose exec -T head smoke-commands.sh /runs/smoke
