# shellcheck shell=sh
# What the start scripts share: settings with their defaults, and checks. It is sourced, not run.
#
#   METASCHED_HOST           address to listen on and to be reached at: 127.0.0.1 unless set; auto is
#                            the first address of this machine or container, for a network of its own
#   RAY_AUTH_MODE            token or disabled; must be said, and be the same everywhere
#   RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, with mode token: the secret, or the file that holds it

METASCHED_HOST="${METASCHED_HOST:-127.0.0.1}"
if [ "$METASCHED_HOST" = auto ]; then
  METASCHED_HOST="$(hostname -i | cut -d ' ' -f 1)"
fi
# Keeps Ray's processes on loopback, drivers of jobs too; see ray_cli.py.
if [ "$METASCHED_HOST" = 127.0.0.1 ]; then
  export RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0
fi

# numba uses what is compiled only in folders that it can write to. Where the source is on a root
# that is read-only, Ray's processes get a copy of it.
copy_source() {
  source="$(cd "$(dirname "$0")/.." && pwd)"
  if [ -w "$source/tune_jobs" ]; then return; fi
  copy="$(mktemp -d)"
  cp -r "$source/." "$copy"
  export PYTHONPATH="$copy${PYTHONPATH:+:$PYTHONPATH}"
}

fail() {
  echo "metasched: $1" >&2
  exit 2
}

# Ray turns authentication on or off by what lies in the home directory if it is told nothing.
check_auth() {
  case "${RAY_AUTH_MODE:-}" in
    disabled) ;;
    token)
      if [ -n "${RAY_AUTH_TOKEN:-}" ]; then return; fi
      [ -s "${RAY_AUTH_TOKEN_PATH:-}" ] ||
        fail "RAY_AUTH_MODE=token needs RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH with a file that is not empty"
      ;;
    *) fail "set RAY_AUTH_MODE to token or to disabled, the same for every process of the cluster" ;;
  esac
}

# Succeeds if HOST PORT PATH answers with status 200; otherwise says what it answers. Python without
# its packages: some 0.1 s of CPU, where importing Ray takes 3.5 s.
answers() {
  python -IS - "$@" <<'END'
import http.client
import sys

host, port, path = sys.argv[1:]
try:
    connection = http.client.HTTPConnection(host, int(port), timeout=5)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read(1000).decode(errors="replace").strip()
except (OSError, http.client.HTTPException) as error:
    sys.exit(f"{host}:{port} does not answer: {error}")
sys.exit(None if answer.status == 200 else f"status {answer.status}: {text}")
END
}

# Ray and MLflow report nothing home.
export RAY_USAGE_STATS_ENABLED=0 MLFLOW_DISABLE_TELEMETRY=true
