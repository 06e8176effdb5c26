#!/bin/sh
# Boots systemd in a copy of this machine's files. No change reaches the machine itself: unshare --cgroup --mount
# --propagation private --pid --uts --ipc --fork --kill-child \ sh enter-jail.sh DIRECTORY REPOSITORY EXCHANGE
# PROGRAM... DIRECTORY is an empty directory, and EXCHANGE contains the files that the program reads and writes. Every
# other write goes to memory: the root is an overlay, the repository is mounted read-only, kernel settings and /sys are
# read-only, and systemd sees only the cgroup in which this shell was started. No unit of Debian starts by itself.
set -eu
directory=$1 repository=$2 exchange=$3
shift 3

mount -t tmpfs tmpfs "$directory"
mkdir "$directory/upper" "$directory/work" "$directory/jail"
jail=$directory/jail
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/upper,workdir=$directory/work" "$jail"
for place in dev run tmp sys var/log; do mount -t tmpfs tmpfs "$jail/$place"; done
# These mounts come after the mounts above, because the directories may be in one of them.
for place in "$repository" "$exchange"; do
  mkdir -p "$jail$place"
  mount --bind "$place" "$jail$place"
done
mount -o remount,ro,bind "$jail$repository"
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}
if [ -d "$cache" ] && [ ! -e "$jail$cache" ]; then
  mkdir -p "$directory/cache" "$directory/cache-work" "$jail$cache"
  mount -t overlay overlay -o "lowerdir=$cache,upperdir=$directory/cache,workdir=$directory/cache-work" "$jail$cache"
fi
for device in null zero full random urandom; do
  : >"$jail/dev/$device"
  mount --bind "/dev/$device" "$jail/dev/$device"
done
mkdir -p "$jail/sys/fs/cgroup"
mount -t cgroup2 none "$jail/sys/fs/cgroup"
mount -o remount,ro "$jail/sys"
mount -t proc proc "$jail/proc"
mount --bind "$jail/proc/sys" "$jail/proc/sys"
mount -o remount,ro,bind "$jail/proc/sys"
[ "$(stat -f -c %T "$jail")" = overlayfs ]
units=$jail/etc/systemd/system
rm -rf "$units" "$jail"/lib/systemd/system/*.wants "$jail"/lib/systemd/system-generators
mkdir -p "$units/proof.target.wants"
printf '[Unit]\nDefaultDependencies=no\n' >"$units/proof.target"
cat >"$units/proof.service" <<UNIT
[Unit]
DefaultDependencies=no
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
Environment="HOME=${HOME:-}" "XDG_CACHE_HOME=${XDG_CACHE_HOME:-}"
Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=$*
StandardOutput=file:$exchange/output
StandardError=file:$exchange/output
UNIT
ln -s ../proof.service "$units/proof.target.wants/proof.service"
echo 0123456789abcdef0123456789abcdef >"$jail/etc/machine-id"

mkdir -p "$jail/machine"
pivot_root "$jail" "$jail/machine"
cd /
umount -l /machine
# The variable `container` tells PID 1 that it may not change the machine.
exec setpriv --bounding-set -sys_module,-sys_rawio,-sys_time,-syslog \
  env -i container=refit PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=proof.target --show-status=no
