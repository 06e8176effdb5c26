#!/bin/sh
# Makes the files of a new machine: `make-root.sh DIRECTORY NAME`. DIRECTORY/usr keeps the changes of the machine below
# /usr.
set -eu
name=$2
# kube-proxy mounts lib/modules. This folder is missing on a host without kernel modules.
mkdir -p "$1/root" "$1/usr/bin" "$1/usr/lib/modules" "$1/usr.work"
cd "$1/root"
mkdir -p dev proc sys run tmp root/.ssh home mnt srv opt/parts opt/cni usr old local/bin local/sbin \
  var/lib/services var/log var/tmp var/cache
ln -s /run var/run
chmod 1777 tmp var/tmp
chmod 700 root root/.ssh
for link in bin sbin lib lib32 lib64 libx32; do [ ! -L "/$link" ] || cp -a "/$link" "$link"; done
cp -a /etc etc
rm -rf etc/ssh/ssh_host_* etc/kubernetes etc/cni etc/containerd
mkdir -p etc/services.d etc/cni/net.d etc/containerd
echo "$name" >etc/hostname
echo "$name" | md5sum | cut -c 1-32 >etc/machine-id
