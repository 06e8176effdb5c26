# Prints the end of the certificate that the API server serves; `another` if it serves none that kubeadm renews, `unseen`
# if nothing here can ask.
# uses: parts/prelude.sh parts/api-server.sh

if ! command -v curl >/dev/null; then
  echo unseen
elif [ "$(flag tls-cert-file "$API")" = "${CA%/*}/apiserver.crt" ]; then
  curl -qksv --noproxy '*' --max-time 5 -o /dev/null "$SERVER/version" 2>&1 | sed -n 's/^\* *expire date: *//p'
else
  echo another
fi
