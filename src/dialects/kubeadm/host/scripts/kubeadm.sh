# Replaces kubeadm. Then runs this kubeadm to upgrade the control plane or the configuration of the kubelet on this
# host.
# uses: parts/prelude.sh parts/step.sh parts/packages.sh parts/keep-configuration.sh parts/restore-manifests.sh parts/keep-static-pods.sh parts/trusted-options.sh parts/flags.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout. The journal's lines of other rollouts do not count.
#   STEP=kubeadm  Name of the step in the journal.
#   VERSION=v1.36.3  The version of Kubernetes that the host is upgraded to.
#   CONFIG=/etc/kubernetes/upgrade.yaml  A file with an UpgradeConfiguration, or empty.
#   PATCHES=/etc/kubernetes/patches  A folder with patches, or empty.
#   IGNORED=Swap,Mem  Checks of the preflight that do not count, or empty.
#   CERTIFICATE_RENEWAL=false  Whether kubeadm renews certificates; empty for its default.
#   ETCD_UPGRADE=false  Whether kubeadm upgrades etcd; empty for its default.
#   ROLE=controlPlane  The role of this host: controlPlane or worker.
#   VERB=apply  What kubeadm runs: `upgrade apply` on the first control-plane host, `upgrade node` on all others.

# `record_run` records the manifests and backups that this host has before the run. It is called before `note begun`, so
# that the record belongs to the last run in the journal.
record_run() {
  {
    printf '%s\n' "$ROLLOUT"
    printf '%s\n' "version $VERSION"
    for file in "$MANIFESTS"/*.yaml; do printf '%s\n' "manifest ${file##*/} $(sha256sum <"$file")"; done
    for folder in "$BACKUPS"/kubeadm-backup-manifests-*; do printf '%s\n' "backup ${folder##*/}"; done
  } >"$RUN.new"
  sync "$RUN.new"
  mv "$RUN.new" "$RUN"
}
# `remove_old_flag` removes a flag that kubeadm before v1.35 wrote. A kubelet from v1.35 on does not accept this flag.
# Only kubeadm v1.35 removes the flag itself, and a worker may skip that version.
remove_old_flag() {
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
}

# Prints the copies of etcd's data that kubeadm left, the newest first.
copies_of_etcd() { ls -1dt "$BACKUPS"/kubeadm-backup-etcd-* 2>/dev/null || true; }

settle_static_pods
seen 'done' && exit 0
# Guard options-of-kubeadm. kubeadm reads its options as root.
refuse_untrusted
if [ "$ROLE" = controlPlane ]; then
  restore_manifests ''
  keep_static_pods
  record_run
fi
keep_configuration
note begun
keep kubeadm "$(file_of kubeadm)"
install_from staged kubeadm
case $VERB in
apply) set -- apply --yes "$VERSION" ;;
*) set -- node ;;
esac
[ -z "$PATCHES" ] || set -- "$@" "--patches=$PATCHES"
[ -z "$CERTIFICATE_RENEWAL" ] || set -- "$@" "--certificate-renewal=$CERTIFICATE_RENEWAL"
[ -z "$ETCD_UPGRADE" ] || set -- "$@" "--etcd-upgrade=$ETCD_UPGRADE"
copies=$(copies_of_etcd)
# If a signal ended kubeadm, a manifest may be missing. If kubeadm ended with an error of its own, it has restored all
# manifests.
with_flags kubeadm upgrade "$@" || { code=$?; [ "$code" -gt 128 ] || note failed; exit "$code"; }
# Each run of kubeadm leaves a complete copy of etcd's data. Only the copy of this run is kept, or the newest copy if this
# run made none. The copy of this run may not have the latest time, because the clock of the host may have been wrong.
made=$(copies_of_etcd | grep -vxF -e "$copies" || true)
[ -n "$made" ] || copies=$(printf '%s\n' "$copies" | tail -n +2)
printf '%s\n' "$copies" | while IFS= read -r copy; do [ -z "$copy" ] || rm -rf -- "$copy"; done
case $ROLE in
controlPlane) note_static_pods ;;
*) remove_old_flag ;;
esac
note 'done'
