#!/bin/sh
# What must work in the image as Kubernetes runs it, with a root that is read-only and folders to
# write to: /tmp, /runs, /mlartifacts. Called inside, by test-image.sh.
set -eu
. "$(dirname "$0")/common.sh"

wait_for() {
  tries=0
  until "$@" >/tmp/answer 2>&1; do
    tries=$((tries + 1))
    if [ $tries = 100 ]; then
      tail -n 20 /tmp/head.log /tmp/mlflow.log /tmp/answer >&2
      fail "$1 has not succeeded in $tries tries"
    fi
    sleep 3
  done
  echo "== $1 succeeds"
}

[ "$(id -u)" != 0 ] || fail "this runs as an ordinary user"
if touch /opt/venv/written 2>/dev/null; then fail "the root is not read-only"; fi
bash -lc 'command -v ray' >/dev/null || fail "a login shell does not find ray"
if check-ray.sh 2>/dev/null; then fail "check-ray.sh succeeds where nothing runs"; fi

export HOME=/tmp RAY_AUTH_MODE=token RAY_AUTH_TOKEN=of-a-test
export MLFLOW_TRACKING_URI=http://127.0.0.1:5000
MLFLOW_BACKEND_STORE_URI=sqlite:////mlartifacts/mlflow.db MLFLOW_ARTIFACTS_DESTINATION=/mlartifacts \
  start-mlflow.sh >/tmp/mlflow.log 2>&1 &
wait_for check-mlflow.sh
METASCHED_HEAD_CPUS=2 start-head.sh >/tmp/head.log 2>&1 &
wait_for check-ray.sh
smoke-commands.sh /runs/smoke
