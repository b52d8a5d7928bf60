#!/bin/sh
# The README's commands, small, on a running cluster; called by smoke.sh inside the head.
#
#   smoke-commands.sh FOLDER    # new, and seen by all nodes
#
# It finds Ray as ray does, by RAY_ADDRESS or a head on this machine, and MLflow by
# MLFLOW_TRACKING_URI.
set -eu
. "$(dirname "$0")/common.sh"
[ $# -eq 1 ] || fail "smoke-commands.sh takes one folder"
folder="$1"
head="${METASCHED_HEAD:-$METASCHED_HOST:${METASCHED_RAY_PORT:-6379}}"
dashboard="http://$METASCHED_HOST:${METASCHED_DASHBOARD_PORT:-8265}"
mkdir -p "$folder"
copy_source
cd "$(dirname "$0")/.."

say() {
  echo "== $*"
  "$@"
}

say python -m tune_jobs.train deeprm-smoke --address "$head" --runners 2 --run "$folder/plain"
for attempt in first second; do # the second finds that all is done
  say ray job submit --address "$dashboard" --submission-id "smoke-$attempt-$$" --working-dir . -- \
    python -m tune_jobs.train deeprm-smoke --runners 2 --run "$folder/job" --continue
done
cmp "$folder/plain/policy/weights.pt" "$folder/job/policy/weights.pt"
say python -m tune_jobs.compare --policies "sjf,tetris,$folder/job" --loads 0.7 --jobsets 10 \
  --out "$folder/comparison"
say python -m tune_jobs.figure learning-curves --runs "$folder/job" --out "$folder/figures"
echo "All of it works."
