# `host_facts` prints facts that matter for an upgrade: the space for images, the clock, swap, processes that make the
# host busy, and versions. Needs ROLE, NOW, PATCHES and CONFIG.
# uses: parts/prelude.sh parts/listens.sh parts/runtime.sh

host_facts() {
  # NEED is the number of KiB that new images may need if they are not on the host yet.
  case $ROLE in
  controlPlane) NEED=1048576 ;;
  *) NEED=262144 ;;
  esac
  case ${RUNTIME##*/} in
  *crio*) images=/var/lib/containers ;;
  *docker*) images=/var/lib/docker ;;
  *) images=/var/lib/containerd ;;
  esac
  df -kP "$R$images" 2>/dev/null | awk -v need="$NEED" 'NR == 2 && $4 < need {
    printf "warn=%s has %d MiB free, new images may need %d MiB\n", $6, $4 / 1024, need / 1024 }'
  off=$(($(date +%s) - NOW))
  [ "$off" -gt -30 ] && [ "$off" -lt 90 ] || printf '%s\n' "clock=its clock and the one here are $off s apart"
  # The kubelet reads every file whose name does not begin with a dot, so this pattern matches the same files.
  for file in "$MANIFESTS"/*; do
    case ${file##*/} in
    etcd.yaml | kube-apiserver.yaml | kube-controller-manager.yaml | kube-scheduler.yaml) ;;
    *) ! grep -qs '/etc/kubernetes/[a-z-]*\.conf' "$file" ||
      printf '%s\n' "pod=${file##*/} reads certificates of kubeadm: restart this static pod yourself after they are renewed" ;;
    esac
  done
  # If swap is on, a kubelet without this setting does not start, and the upgrade restarts the kubelet.
  if grep -qs '^/' "$R/proc/swaps" && ! grep -qs '^failSwapOn: *false' "$R/var/lib/kubelet/config.yaml" &&
    ! is_off fail-swap-on; then
    echo "warn=swap is on, and the kubelet does not allow it: run swapoff -a, or set failSwapOn: false in its configuration"
  fi
  if [ -e "$D/kubeadm.lock" ] && ! flock -n "$D/kubeadm.lock" true; then
    # This line does not contain the process id of the step. If a person ended that process, a second kubeadm could run
    # at the same time as the first.
    echo 'busy=a step of Refit, log /run/refit.*'
    echo 'warn=a step of an earlier run is at work: this run waits for its end'
  else
    for process in $(pgrep -x kubeadm 2>/dev/null); do printf '%s\n' "busy=kubeadm, process $process"; done
  fi
  # An API server that already listens does not count as busy. If a caller cannot reach it, the cause is a different
  # problem.
  file=$MANIFESTS/kube-apiserver.yaml
  [ ! -e "$file" ] || [ -z "$(find "$file" -cmin -5 2>/dev/null)" ] || is_listening "$file" || echo 'busy=an API server that starts'
  printf '%s\n' "kernel=$(uname -r)"
  is_off fail-cgroupv1 ||
    { [ -n "$PATCHES$CONFIG" ] && grep -qs '^ *failCgroupV1: *false' "$R/var/lib/kubelet/config.yaml"; } ||
    # A host without this folder does not run a kubelet.
    [ ! -e "$R/sys/fs/cgroup" ] || printf '%s\n' "cgroup=$(stat -fc %T "$R/sys/fs/cgroup" 2>&1)"
  ! uses_unit || printf '%s\n' "containerd=$(containerd_says)"
  # This prints the phases that an UpgradeConfiguration switches off, and the checks of the preflight that it ignores.
  # It reads lists in both forms of YAML.
  [ -z "$CONFIG" ] || awk '
    function names(text) { gsub(/[][",\047]/, " ", text); count = split(text, each, " "); for (i = 1; i <= count && each[i] !~ /^#/; i++) print "ignores=" each[i] }
    /^[a-z]/ { of = $1 }
    /^ +(certificateRenewal|etcdUpgrade): *false/ { print "leaves=" of $1 }
    /^ +ignorePreflightErrors:/ { sub(/^[^:]*:/, ""); names($0); is_list = 1; next }
    is_list && /^ *- / { sub(/^ *- /, ""); names($0); next }
    { is_list = 0 }' "$CONFIG" 2>/dev/null || true
}
