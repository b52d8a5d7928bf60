#!/bin/sh
# Succeeds if the MLflow server of this machine answers.
set -eu
. "$(dirname "$0")/common.sh"
exec python -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' \
  "http://$METASCHED_HOST:${METASCHED_MLFLOW_PORT:-5000}/health"
