# Prints when the certificate of the API server expires. Prints `another` if the API server serves a certificate that
# kubeadm does not renew, and `unseen` if this host has no curl to ask the API server.
# uses: parts/prelude.sh parts/api-server.sh

if ! command -v curl >/dev/null; then
  echo unseen
elif [ "$(flag tls-cert-file "$API")" = "${CA%/*}/apiserver.crt" ]; then
  curl -qksv --noproxy '*' --max-time 5 -o /dev/null "$SERVER/version" 2>&1 | sed -n 's/^\* *expire date: *//p'
else
  echo another
fi
