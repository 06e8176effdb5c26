# Prints a line `address=ADDRESS` for each address of this host. Prints `waits=` if the kubelet has requested a serving
# certificate from the cluster and has not received it yet.
# uses: parts/prelude.sh

# The device kube-ipvs0 is left out, because kube-proxy may give it the addresses of Services.
ip -o addr show up scope global |
  awk '$2 != "kube-ipvs0" { sub("/.*", "", $4); print "address=" $4 }'
! grep -qs '^serverTLSBootstrap: true' "$R/var/lib/kubelet/config.yaml" ||
  [ -e "$R/var/lib/kubelet/pki/kubelet-server-current.pem" ] || echo waits=
