#!/bin/sh
# Runs a program in a copy of this machine's files with OpenRC in it, of which nothing reaches the machine itself:
#   unshare --mount --propagation private --pid --fork --kill-child sh enter-jail.sh OPENRC DIRECTORY REPOSITORY PROGRAM...
# OPENRC holds the unpacked packages, DIRECTORY is an empty one. Every write, and every deletion, goes to memory: the root
# is an overlay, the repository is bound read-only, and there is no /sys. Only the folder EXCHANGE, if set, is the machine's.
set -eu
openrc=$1 directory=$2 repository=$3
shift 3

mount -t tmpfs tmpfs "$directory"
mkdir "$directory/upper" "$directory/work" "$directory/jail"
cp -a "$openrc" "$directory/openrc"
jail=$directory/jail
mount -t overlay overlay -o "lowerdir=$directory/openrc:/,upperdir=$directory/upper,workdir=$directory/work" "$jail"
for place in dev run tmp; do
  mkdir -p "$jail/$place"
  mount -t tmpfs tmpfs "$jail/$place"
done
# After those, since it may lie in one of them.
mkdir -p "$jail$repository"
mount --bind "$repository" "$jail$repository"
mount -o remount,ro,bind "$jail$repository"
if [ -n "${EXCHANGE:-}" ]; then
  mkdir -p "$jail$EXCHANGE"
  mount --bind "$EXCHANGE" "$jail$EXCHANGE"
fi
for device in null zero random urandom; do
  : >"$jail/dev/$device"
  mount --bind "/dev/$device" "$jail/dev/$device"
done
mount -t proc proc "$jail/proc"
[ "$(stat -f -c %T "$jail")" = overlayfs ]

# What OpenRC makes when it boots a machine; here it boots nothing.
for name in starting started stopping inactive wasinactive failed hotplugged daemons options exclusive scheduled tmp; do
  mkdir -p "$jail/run/openrc/$name"
done
mkdir -p "$jail/run/lock" "$jail/etc/insserv.conf.d"
: >"$jail/etc/insserv.conf"
echo default >"$jail/run/openrc/softlevel"
# This shell is the first process here: it buries those whose parents are gone, which OpenRC waits for.
chroot "$jail" "$@" &
wait $!
