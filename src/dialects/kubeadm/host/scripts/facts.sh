# Prints facts as lines `name=value`: versions, the port of the API server, the certificates of kubeadm and of the
# kubelet without their keys, and the answers of the member of etcd.
# uses: parts/prelude.sh parts/certificate-fact.sh parts/kubelet-facts.sh parts/etcd-answers.sh
# input:
#   ROLE=controlPlane  The role of this host: controlPlane or worker.

[ ! -d "$D/restore" ] || fail "a restore of etcd has begun, its manifests lie in $D/restore: run refit kubeadm restore-etcd again"
printf '%s\n' "apiPort=$(flag secure-port "$MANIFESTS/kube-apiserver.yaml")"
printf '%s\n' "kubeadm=$(kubeadm version -o short 2>/dev/null)"
for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
  image=$(image_of "$MANIFESTS/$name.yaml")
  [ -z "$image" ] || printf '%s\n' "image.$name=$image"
done
pki=$(flag client-ca-file "$MANIFESTS/kube-apiserver.yaml")
pki=${pki:-/etc/kubernetes/pki/ca.crt}
pki=${pki%/*}
for name in apiserver apiserver-kubelet-client apiserver-etcd-client front-proxy-client ca front-proxy-ca \
  etcd/server etcd/peer etcd/healthcheck-client etcd/ca; do
  file=$R$pki/$name.crt
  [ ! -e "$file" ] || certificate "$file" "$(first <"$file")"
done
for name in ca front-proxy-ca etcd/ca; do [ ! -e "$R$pki/$name.key" ] || printf '%s\n' "key=$pki/$name.key"; done
for name in admin super-admin controller-manager scheduler; do
  file=$R/etc/kubernetes/$name.conf
  [ -s "$file" ] || continue
  data=$(sed -n '/^ *client-certificate-data: */{s///;p;q;}' "$file")
  [ -z "$data" ] || certificate "$file" "$(printf '%s\n' "$data" | base64 -d | first)"
done
kubelet_facts
[ "$ROLE" != controlPlane ] || etcd_answers
