# `is_whole FILE` fails unless FILE is a whole snapshot of etcd.

# The last 32 bytes of a snapshot are the SHA-256 of all other bytes. This hash proves that the snapshot was received
# completely.
is_whole() {
  body=$(($(wc -c <"$1") - 32))
  [ "$body" -gt 0 ] && [ "$(head -c "$body" "$1" | sha256sum | cut -c 1-64)" = "$(tail -c 32 "$1" | od -An -v -tx1 | tr -d ' \n')" ]
}
