# Prints the answers of a member of etcd about itself and the other members, as lines `etcd=JSON`.
# uses: parts/prelude.sh parts/etcd-answers.sh
# input:
#   MEMBER=https://10.0.0.2:2379  URL of a member on another host; empty for the member of this host.

URL=${MEMBER:-$URL}
etcd_answers
