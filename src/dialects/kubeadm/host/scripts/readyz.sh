# Prints the HTTP status of /readyz of the API server of this host.
# uses: parts/prelude.sh parts/api-server.sh

CLIENT=$R${CA%/*}/apiserver-kubelet-client
said=$(curl -qsS --noproxy '*' --max-time 5 -o /dev/null -w '%{http_code}' --cacert "$R$CA" --cert "$CLIENT.crt" \
  --key "$CLIENT.key" "$SERVER/readyz" 2>&1) || fail "${said%000}"
printf '%s\n' "$said"
