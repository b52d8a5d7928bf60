#!/bin/sh
# Makes what Ray's TLS needs: an authority of your own, and a certificate for each node.
#
#   make-certificates.sh FOLDER ADDRESS...
#
# writes ca.crt, and for each address ADDRESS.crt and ADDRESS.key. An authority that is there is used
# again, so that nodes can be added. Each machine gets ca.crt and its own two files. Whoever has
# ca.key can join the cluster: keep it where you ran this.
set -eu
[ $# -ge 2 ] || { echo "usage: make-certificates.sh FOLDER ADDRESS..." >&2; exit 2; }

request() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -batch "$@"
}

umask 077
mkdir -p "$1"
cd "$1"
shift
[ -f ca.key ] || request -x509 -days 3650 -subj /CN=metasched -keyout ca.key -out ca.crt
for address in "$@"; do
  # Processes of a node call each other by its address and by 127.0.0.1.
  names="IP:$address,IP:127.0.0.1,DNS:localhost"
  request -subj "/CN=$address" -addext "subjectAltName=$names" -keyout "$address.key" |
    openssl x509 -req -CA ca.crt -CAkey ca.key -days 365 -copy_extensions copy -out "$address.crt"
done
