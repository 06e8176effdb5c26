# `etcd METHOD JSON [SECONDS]` sends a request to the HTTP gateway of etcd at URL, which receives and returns JSON. It
# uses kubeadm's client certificate for health checks, which is in PKI. URL is empty if this host has no manifest of
# etcd.
# uses: parts/prelude.sh

CA=$(flag trusted-ca-file "$MANIFESTS/etcd.yaml")
PKI=${CA:-/etc/kubernetes/pki/etcd/ca.crt} && PKI=$R${PKI%/*}
# A member may listen on 0.0.0.0 or [::]. No certificate contains these addresses, so they are replaced with the
# loopback addresses.
URL=$(flag listen-client-urls "$MANIFESTS/etcd.yaml")
[ -z "$URL" ] || URL=$(printf '%s\n' "$URL" | sed 's/,.*//; s/0\.0\.0\.0/127.0.0.1/; s/\[::]/[::1]/')
etcd() {
  curl -qsS --noproxy '*' --max-time "${3:-10}" --cacert "$PKI/ca.crt" --cert "$PKI/healthcheck-client.crt" \
    --key "$PKI/healthcheck-client.key" -d "$2" "$URL/v3/$1"
}
