#!/bin/sh
# Runs a program in a copy of this machine's files with OpenRC in it. No change reaches the machine itself: unshare
# --mount --propagation private --pid --fork --kill-child sh enter-jail.sh OPENRC DIRECTORY REPOSITORY PROGRAM... OPENRC
# contains the unpacked packages, and DIRECTORY is an empty directory. Every write and every deletion goes to memory:
# the root is an overlay, the repository is mounted read-only, and there is no /sys. Only the folder EXCHANGE, if set,
# is a folder of the machine.
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
# This mount comes after the mounts above, because the repository may be in one of these directories.
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

# The directories and files that OpenRC creates when it boots a machine. This jail does not boot.
for name in starting started stopping inactive wasinactive failed hotplugged daemons options exclusive scheduled tmp; do
  mkdir -p "$jail/run/openrc/$name"
done
mkdir -p "$jail/run/lock" "$jail/etc/insserv.conf.d"
: >"$jail/etc/insserv.conf"
echo default >"$jail/run/openrc/softlevel"
# This shell has PID 1 here, so it reaps the orphaned processes. OpenRC waits until they are reaped.
chroot "$jail" "$@" &
wait $!
