#!/bin/sh
# Builds the image without Docker and without a registry, and works in it as its ordinary user.
#
#   docker/test-image.sh
#
#   METASCHED_IMAGE_STORE   folder for some 10 GB, made anew and removed at the end; /tmp/image-store
#                           unless set. KEEP=1 leaves it, and then goes on from the base it holds.
#   DEBIAN_MIRROR           where the packages of the base come from
#   TORCH_INDEX             index of torch, as in the Dockerfile; or
#   METASCHED_WHEELS        a folder with torch's wheel, which serves as its index
#
# The base is Debian with its own Python, made by debootstrap and committed under the name that the
# Dockerfile asks for. So it shows that the Dockerfile builds, and that head, MLflow, health checks,
# jobs and the README's commands work on a read-only root; it does not show the true base, compose
# or Kubernetes.
set -eu
. "$(dirname "$0")/common.sh"
cd "$(dirname "$0")/.."
store="${METASCHED_IMAGE_STORE:-/tmp/image-store}"
image=metasched-test

skip() {
  echo "skipped: test-image needs $1"
  exit 0
}

in_store() {
  buildah --root "$store/storage" --runroot "$store/run" --storage-driver vfs "$@"
}

clean() {
  in_store rm --all >/dev/null 2>&1 || true
  rm -rf "$store"
}

# The Python of the base under the name that the Dockerfile asks for.
make_base() {
  debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates \
    bookworm "$store/root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
  ln -s /usr/bin/python3 "$store/root/usr/local/bin/python"
  # A machine behind a proxy of its own has that proxy's authority among its certificates.
  cp /etc/ssl/certs/ca-certificates.crt "$store/root/etc/ssl/certs/ca-certificates.crt"
  container="$(in_store from scratch)"
  in_store add --quiet "$container" "$store/root" / >/dev/null
  in_store config --env PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    --env PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env LANG=C.UTF-8 "$container"
  in_store commit --quiet --rm "$container" "$1" >/dev/null
  rm -rf "$store/root"
}

# A folder of wheels as an index that pip understands.
make_index() {
  mkdir -p "$store/index/torch"
  cp "$METASCHED_WHEELS"/torch-*.whl "$store/index/torch"
  for wheel in "$store"/index/torch/*.whl; do
    name="$(basename "$wheel")"
    echo "<a href=\"$(echo "$name" | sed 's/+/%2B/')\">$name</a>"
  done >"$store/index/torch/index.html"
}

# Runs check-image.sh below a folder as Kubernetes would: an ordinary user, a root that is read-only,
# processes and a network of its own. Further arguments are the environment.
run_read_only() {
  # shellcheck disable=SC2016  # the inner shell expands them
  unshare --mount --net --pid --fork sh -euc '
    root="$1"
    shift
    ip link set lo up
    mount --bind "$root" "$root"
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    for folder in dev/shm tmp runs mlartifacts; do
      mount -t tmpfs -o mode=1777 tmpfs "$root/$folder"
    done
    mount -o remount,ro,bind "$root"
    exec env -i "$@" chroot --userspec=1000:1000 "$root" check-image.sh' - "$@"
}

PATH="$PATH:/usr/sbin:/sbin"
for name in buildah debootstrap ip unshare; do
  command -v "$name" >/dev/null || skip "$name, which is not installed"
done
[ "$(id -u)" = 0 ] || skip "root, for debootstrap and mounts"
mkdir -p "$store"
if [ -z "${KEEP:-}" ]; then
  trap clean EXIT
fi

base="docker.io/library/$(sed -n 's/^ARG BASE=//p' docker/Dockerfile)"
echo "== the base, $base"
in_store inspect --type image "$base" >/dev/null 2>&1 || make_base "$base"

echo "== the image"
set -- --build-arg "BASE=$base"
if [ -n "${METASCHED_WHEELS:-}" ]; then
  make_index
  set -- "$@" --volume "$store/index:/index:ro" --build-arg TORCH_INDEX=file:///index
elif [ -n "${TORCH_INDEX:-}" ]; then
  set -- "$@" --build-arg "TORCH_INDEX=$TORCH_INDEX"
fi
in_store bud --pull-never --isolation chroot --network host --format docker "$@" \
  --file docker/Dockerfile --tag "$image" .

echo "== the README's commands in it"
container="$(in_store from --pull-never "$image")"
# shellcheck disable=SC2046  # one word for each variable
run_read_only "$(in_store mount "$container")" \
  $(in_store inspect --type image --format '{{range .OCIv1.Config.Env}}{{.}} {{end}}' "$image")
echo "The image builds, and works as its ordinary user on a read-only root."
