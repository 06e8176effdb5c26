# shellcheck shell=sh disable=SC2154
# kube-proxy may give addresses of Services to that device.
ip -o addr show up scope global |
  awk '$2 != "kube-ipvs0" { sub("/.*", "", $4); print "address=" $4 }'
! grep -qs '^serverTLSBootstrap: true' "$R/var/lib/kubelet/config.yaml" ||
  [ -e "$R/var/lib/kubelet/pki/kubelet-server-current.pem" ] || echo waits=
