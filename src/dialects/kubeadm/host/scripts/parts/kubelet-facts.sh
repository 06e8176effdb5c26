# `kubelet_facts` prints the version of the kubelet, its credentials, and the number of its crashes. The version is that
# of the running process, because the host may also have kubelet files that this process does not use. The credentials
# are those of the next start.
# uses: parts/prelude.sh parts/packages.sh parts/in-use.sh parts/kubelet-process.sh parts/kubelet-credentials.sh

version_in_use() {
  said=$(said_by "$KUBELET_PID") || return 1
  case $said in 'Kubernetes v'*) printf '%s\n' "${said#Kubernetes }" ;; *) return 1 ;; esac
}
version_fact() {
  found=
  case $KUBELET_PID in
  '') ;;
  0)
    case $(systemctl is-active kubelet 2>/dev/null) in
    inactive | failed) ;;
    *) echo 'warn=no kubelet runs on this host: the version of the file in PATH counts' ;;
    esac
    ;;
  *)
    found=$(version_in_use 2>/dev/null) ||
      printf '%s\n' "warn=the executable of the kubelet (process $KUBELET_PID) cannot be asked for its version, or somebody besides root could change it: the version of the file in PATH counts"
    ;;
  esac
  if [ -n "$found" ]; then
    another_runs kubelet "$KUBELET_PID" | sed 's/^/hard=/'
  else
    found=$(kubelet --version 2>/dev/null) || true
  fi
  printf '%s\n' "kubelet=${found#Kubernetes }"
}
# Prints how many times systemd has restarted the kubelet automatically since its last regular start, and the last line
# that the kubelet itself wrote to the log.
crashes_fact() {
  restarts=$(systemctl show -p NRestarts --value kubelet 2>/dev/null) || restarts=
  case $restarts in
  '' | 0 | *[!0-9]*) ;;
  *) printf '%s\n' "kubeletCrashes=$restarts $(journalctl _SYSTEMD_UNIT=kubelet.service -n 1 -o cat --no-pager 2>/dev/null | tail -n 1 | cut -c 1-2000)" ;;
  esac
}
kubelet_facts() {
  find_kubelet
  version_fact
  kubelet_credentials
  crashes_fact
}
