# renew NAME: fails where kubeadm renewed nothing, or by its defaults instead of the cluster's configuration; it says so and exits with 0.
renew() {
  said=$(kubeadm certs renew "$1" 2>&1) || fail "$said"
  echo "$said"
  case $said in
  *'MISSING!'* | *'Detected external'* | *'Falling back to default'*)
    fail "kubeadm did not renew $1 by the configuration of the cluster: no static pod was restarted"
    ;;
  esac
}
