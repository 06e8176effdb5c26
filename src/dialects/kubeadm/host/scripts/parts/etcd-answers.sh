# `etcd_answers` prints the answers of the member of etcd at URL about itself and the other members, as lines
# `etcd=JSON`. It prints nothing if URL is empty. One of the requests is a linearizable read. Its success proves that
# the member and the leader can reach each other.
# uses: parts/prelude.sh parts/etcd.sh

etcd_answers() {
  if [ -n "$URL" ] && ! { command -v curl >/dev/null && [ -e "$PKI/healthcheck-client.key" ]; }; then
    printf '%s\n' "warn=curl or $PKI/healthcheck-client.key is missing: the health of etcd is not checked"
    echo "etcd=404 not asked"
  elif [ -n "$URL" ]; then
    for question in 'kv/range {"key":"aGVhbHRo"}' 'maintenance/status {}' 'cluster/member/list {}' \
      'maintenance/alarm {"action":"GET"}'; do
      printf '%s\n' "etcd=$(etcd "${question%% *}" "${question#* }" 2>&1 | tr -d '\n' | cut -c 1-20000)"
    done
  fi
}
