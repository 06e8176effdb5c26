#!/bin/sh
# The first process of a machine: `boot.sh DIRECTORY NAME ADDRESS PARTS`. It makes DIRECTORY/root the root, waits for
# its network card, and then runs the services of /etc/services.d, as systemd does for units with Restart=always. The
# files below DIRECTORY/root survive a power cut, except those in /run.
set -eu
directory=$1 name=$2 address=$3 parts=$4
root=$directory/root

mount --bind "$root" "$root"
cd "$root"
mount -t overlay -o "lowerdir=/usr,upperdir=$directory/usr,workdir=$directory/usr.work" overlay usr
mount --bind local usr/local
for link in bin sbin lib lib64; do
  [ -e "/$link" ] && [ ! -L "/$link" ] || continue
  mkdir -p "$link"
  mount --rbind "/$link" "$link"
done
mount --bind "$parts" opt/parts
mount -o remount,bind,ro opt/parts
mount --rbind /dev dev
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/services run/lock run/sshd run/quiet
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  # A cgroup that passes controllers to its children must not have processes of its own.
  mkdir -p sys/fs/cgroup/init
  echo $$ >sys/fs/cgroup/init/cgroup.procs
  for controller in $(cat sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" >sys/fs/cgroup/cgroup.subtree_control || true
  done
else
  mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
  for hierarchy in /sys/fs/cgroup/*/; do
    [ -e "$hierarchy/cgroup.procs" ] && [ ! -e "$hierarchy/cgroup.controllers" ] || continue
    kind=$(basename "$hierarchy")
    mkdir "sys/fs/cgroup/$kind"
    case $kind in systemd) options=none,name=systemd ;; *) options=$kind ;; esac
    mount -t cgroup -o "$options" cgroup "sys/fs/cgroup/$kind"
  done
fi
# The kubelet sets these values for the whole kernel, unless they already have the right value. The change would also
# affect the other machines and the host.
pretend() {
  echo "$2" >"run/quiet/$(basename "$1")"
  mount --bind "run/quiet/$(basename "$1")" "proc/sys/$1"
}
pretend vm/overcommit_memory 1
pretend vm/panic_on_oom 0
pretend kernel/panic 10
pretend kernel/panic_on_oops 1
pretend kernel/keys/root_maxkeys 1000000
pretend kernel/keys/root_maxbytes 25000000
hostname "$name"
pivot_root . old
cd /
umount -l /old
mount --make-rshared /

until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip addr add "$address/24" dev eth0
ip link set eth0 up
network=${address%.*}
ip route add default via "$network.1"
# Each machine has a range for its pods: 10.244.<last number of its address>.0/24.
for last in 11 12 13 14 15 21 22 23; do
  [ "$network.$last" = "$address" ] || ip route add "10.244.$last.0/24" via "$network.$last"
done
echo 1 >/proc/sys/net/ipv4/ip_forward

supervise() {
  while :; do
    if [ -e "/run/services/$1.up" ]; then
      sh "/etc/services.d/$1" </dev/null >>"/var/log/$1.log" 2>&1 &
      echo $! >"/run/services/$1.pid"
      wait $! || true
      rm -f "/run/services/$1.pid"
      [ ! -e "/run/services/$1.again" ] || { rm "/run/services/$1.again"; continue; }
      # A unit with its own RestartSec has a file with the number of seconds.
      sleep "$(cat "/etc/restart-seconds/$1" 2>/dev/null || echo 1)"
    else
      sleep 0.1
    fi
  done
}

for service in /etc/services.d/*; do
  service=$(basename "$service")
  [ -e "/etc/services.d/$service" ] || continue
  [ -e "/var/lib/services/$service.off" ] || : >"/run/services/$service.up"
  supervise "$service" &
done
: >/run/booted
while :; do wait || true; sleep 1; done
