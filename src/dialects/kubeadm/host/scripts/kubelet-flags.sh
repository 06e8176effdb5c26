# No kubelet from v1.35 on knows this flag of kubeadm before it. Only kubeadm v1.35 removes it, which a worker may skip.
file=$R/var/lib/kubelet/kubeadm-flags.env
case $VERSION in
v1.[0-9].* | v1.[12][0-9].* | v1.3[0-4].*) ;;
*)
  if grep -qs -e '--pod-infra-container-image' "$file"; then
    cp -p "$file" "$D/kubelet-flags"
    sed 's/ *--pod-infra-container-image=[^ "'\'']*//' "$file" >"$D/kubelet-flags"
    place "$D/kubelet-flags" "$file"
    rm "$D/kubelet-flags"
  fi
  ;;
esac
