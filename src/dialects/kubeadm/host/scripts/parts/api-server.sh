# Sets API to the manifest of the API server of this host, CA to the authority of its clients, and SERVER to its URL
# with the address that its certificate names. Ends the script if there is no manifest.
# uses: parts/prelude.sh

API=$MANIFESTS/kube-apiserver.yaml
[ -e "$API" ] || fail "kube-apiserver.yaml is missing"
CA=$(flag client-ca-file "$API")
PORT=$(flag secure-port "$API")
ADDRESS=$(flag advertise-address "$API")
case $ADDRESS in *:*) ADDRESS="[$ADDRESS]" ;; esac
SERVER=https://$ADDRESS:${PORT:-6443}
