# shellcheck shell=sh disable=SC2034,SC2154
# Of this host, at the address that its certificate names.
API=$MANIFESTS/kube-apiserver.yaml
[ -e "$API" ] || fail "kube-apiserver.yaml is missing"
CA=$(flag client-ca-file "$API")
PORT=$(flag secure-port "$API")
ADDRESS=$(flag advertise-address "$API")
case $ADDRESS in *:*) ADDRESS="[$ADDRESS]" ;; esac
SERVER=https://$ADDRESS:${PORT:-6443}
