# Makes the member of etcd on this host, which is the leader, transfer the leadership to another member.
# uses: parts/prelude.sh parts/etcd.sh
# input:
#   TO=9372538179322589801  Id of the member that is to lead, in decimal.

etcd maintenance/transfer-leadership "{\"targetID\":\"$TO\"}"
