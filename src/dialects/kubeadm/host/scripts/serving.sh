# Prints a line `address=ADDRESS` for each address of this host, and `waits=` if the kubelet asks the cluster for a serving
# certificate and has none yet.
# uses: parts/prelude.sh

# kube-proxy may give addresses of Services to the device kube-ipvs0.
ip -o addr show up scope global |
  awk '$2 != "kube-ipvs0" { sub("/.*", "", $4); print "address=" $4 }'
! grep -qs '^serverTLSBootstrap: true' "$R/var/lib/kubelet/config.yaml" ||
  [ -e "$R/var/lib/kubelet/pki/kubelet-server-current.pem" ] || echo waits=
