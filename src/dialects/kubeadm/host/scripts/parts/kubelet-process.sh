# `find_kubelet` sets what is known of the kubelet that systemd runs: KUBELET_PID, which is 0 if none runs and empty if nobody can
# say, and KUBELET_WORDS, its arguments, one a line.
# uses: parts/prelude.sh

find_kubelet() {
  KUBELET_PID=$(systemctl show -p MainPID --value kubelet 2>/dev/null) || KUBELET_PID=
  case $KUBELET_PID in *[!0-9]*) KUBELET_PID= ;; esac
  KUBELET_WORDS=$({ tr '\0' '\n' <"$R/proc/${KUBELET_PID:-0}/cmdline"; } 2>/dev/null) || KUBELET_WORDS=
}
