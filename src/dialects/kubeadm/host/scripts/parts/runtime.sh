# `find_runtime` sets RUNTIME to the endpoint of the container runtime that the kubelet uses. It reads the flags of the
# kubelet's process, or the flags in its files if the kubelet does not run. Then it tries the configuration of the
# kubelet, and at last the default. The host may also have another runtime, which the kubelet does not use.
# `uses_containerd` fails unless RUNTIME is containerd. `uses_unit` fails unless RUNTIME is the usual socket. A
# different socket may belong to a containerd that is not the systemd unit, such as the containerd of k3s.
# `containerd_says` prints the version of the running containerd. If that version cannot be read, it prints the version
# of the file in PATH.
# uses: parts/prelude.sh parts/in-use.sh parts/kubelet-process.sh

find_runtime() {
  find_kubelet
  words=$KUBELET_WORDS
  [ -n "$words" ] || words=$(words_in_files)
  RUNTIME=$(printf '%s\n' "$words" | flag_in container-runtime-endpoint)
  [ -n "$RUNTIME" ] || RUNTIME=$(sed -n 's/^containerRuntimeEndpoint: *//p' "$R/var/lib/kubelet/config.yaml" 2>/dev/null | tr -d "\"'") || true
  RUNTIME=${RUNTIME:-unix:///run/containerd/containerd.sock}
}
uses_containerd() { case ${RUNTIME##*/} in *containerd*) ;; *) return 1 ;; esac; }
uses_unit() { case ${RUNTIME#unix://} in /run/containerd/containerd.sock | /var/run/containerd/containerd.sock) ;; *) return 1 ;; esac; }
containerd_says() {
  said_by "$(main_pid containerd)" 2>/dev/null || containerd --version 2>/dev/null
}
