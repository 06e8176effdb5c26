#!/bin/sh
# Stands in for `k0s backup` (https://docs.k0sproject.io/stable/backup/): writes an archive with etcd and the keys to
# standard output. In a stand-in, etcd is one file, which must already be a snapshot.
set -e
data=/var/lib/k0s
while [ $# -gt 0 ]; do
  case $1 in
  --data-dir) data=$2 ;;
  --status-socket) [ -S "$2" ] || { echo "Error: unable to detect cluster status: no socket $2" >&2; exit 1; } ;;
  --save-path) [ "$2" = - ] || { echo "the stand-in knows only standard output" >&2; exit 1; } ;;
  *) echo "Error: unknown flag: $1" >&2; exit 1 ;;
  esac
  shift 2
done
work=$(mktemp -d "${TMPDIR:-/tmp}/k0s-backupXXXXXX")
cp "$data/etcd/member/snap/db" "$work/etcd-snapshot.db"
mkdir -p "$data/pki"
# A test can make the script wait here, while its temporary files exist.
if [ -e "$data/hang" ]; then
  : >"$data/hangs"
  while [ -e "$data/hang" ]; do sleep 0.1; done
fi
tar -cz -C "$work" etcd-snapshot.db -C "$data" pki
rm -rf "$work"
