#!/bin/sh
# A command for command-updater.ts: changes the operating system of a Machine as a whole, when the field with its image changes. Here
# bootc writes the image to the other slot of the disk, and the machine starts from it. Data, kubelet and certificates stay.
#
# Change: the field of your infrastructure Machines, and the two bootc commands if your system changes in another way:
#         `talosctl upgrade --image`, `systemd-sysupdate update`, `rauc install`, `openstack server rebuild`.
# Use:    node command-updater.ts 9443 /certs infrastructureMachine image ./change-os.sh
set -eu

of_machine() {
  kubectl get machines.cluster.x-k8s.io "$MACHINE" --namespace "$NAMESPACE" --output "jsonpath=$1"
}
node=$(of_machine '{.status.nodeRef.name}')
address=$(of_machine '{.status.addresses[?(@.type=="InternalIP")].address}')
of_node() { kubectl get node "$node" --output "jsonpath=$1"; }
on_host() { ssh -o BatchMode=yes -o ConnectTimeout=10 "root@$address" "$@"; }

# While the machine restarts, ssh gets no answer. The script then exits with 75, so that the updater runs this command
# again later.
status=$(on_host bootc status --format=json </dev/null) || exit 75
image=$(printf '%s' "$status" | node -p 'JSON.parse(fs.readFileSync(0)).status.booted.image.image.image')

if [ "$image" = "$VALUE" ]; then
  if [ -n "$(of_node '{.metadata.annotations.example\.com/changes-os}')" ]; then
    kubectl wait --for=condition=Ready "node/$node" --timeout=5m
    kubectl uncordon "$node"
    kubectl annotate node "$node" example.com/changes-os-
  fi
  exit 0
fi
# A node that somebody else cordoned stays cordoned.
[ "$(of_node '{.spec.unschedulable}')" = true ] || kubectl annotate node "$node" example.com/changes-os=yes --overwrite
kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout=30m
on_host bootc switch "$VALUE" </dev/null >&2 || {
  code=$?
  # ssh exits with 255 if the connection fails. An earlier run of this command, whose updater was killed, may be restarting the machine.
  if [ "$code" = 255 ]; then exit 75; fi
  exit "$code"
}
# The connection may end before ssh has the exit code.
on_host systemctl reboot </dev/null || true
exit 75
