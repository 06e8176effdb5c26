#!/bin/sh
# A command for command-updater.ts: changes the memory of a virtual machine of libvirt when the field with the size in
# MiB changes.
#
# Change: the field of your infrastructure Machines, the connection (LIBVIRT_DEFAULT_URI), and the name of the virtual
# machine. In this example the name is the part of the provider ID after the last slash. Use:    node command-updater.ts
# 9443 /certs infrastructureMachine memoryMiB ./resize-memory.sh
set -eu

name=${PROVIDER_ID##*/}
node=$(kubectl get machines.cluster.x-k8s.io "$MACHINE" --namespace "$NAMESPACE" --output 'jsonpath={.status.nodeRef.name}')
of_node() { kubectl get node "$node" --output "jsonpath=$1"; }
wanted=$((VALUE * 1024))
maximum=$(virsh dominfo "$name" | sed -n 's/^Max memory: *\([0-9]*\) KiB$/\1/p')
state=$(virsh domstate "$name")

if [ "$maximum" = "$wanted" ] && [ "$state" = running ]; then
  if [ -n "$(of_node '{.metadata.annotations.example\.com/resizes-memory}')" ]; then
    kubectl wait --for=condition=Ready "node/$node" --timeout=5m
    kubectl uncordon "$node"
    kubectl annotate node "$node" example.com/resizes-memory-
  fi
  exit 0
fi
if [ "$maximum" != "$wanted" ] && [ "$state" = running ]; then
  # A node that somebody else cordoned stays cordoned.
  [ "$(of_node '{.spec.unschedulable}')" = true ] || kubectl annotate node "$node" example.com/resizes-memory=yes --overwrite
  kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout=30m
  virsh shutdown "$name"
fi
if [ "$state" = 'shut off' ]; then
  virsh setmaxmem "$name" "${wanted}KiB" --config
  virsh setmem "$name" "${wanted}KiB" --config
  virsh start "$name"
fi
exit 75
