# shellcheck shell=sh disable=SC2034,SC2154
# Asks the API server of this host, at the address that its certificate names; prints the HTTP status.
API=$MANIFESTS/kube-apiserver.yaml
[ -e "$API" ] || fail "kube-apiserver.yaml is missing"
CA=$(flag client-ca-file "$API")
PORT=$(flag secure-port "$API")
ADDRESS=$(flag advertise-address "$API")
case $ADDRESS in *:*) ADDRESS="[$ADDRESS]" ;; esac
CLIENT=$R${CA%/*}/apiserver-kubelet-client
said=$(curl -qsS --noproxy '*' --max-time 5 -o /dev/null -w '%{http_code}' --cacert "$R$CA" --cert "$CLIENT.crt" \
  --key "$CLIENT.key" "https://$ADDRESS:${PORT:-6443}/readyz" 2>&1) || fail "${said%000}"
echo "$said"
