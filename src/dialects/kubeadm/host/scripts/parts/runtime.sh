# `find_runtime` sets RUNTIME, the endpoint of the container runtime that the kubelet uses: by the flags of its
# process, or those in its files while it does not run, then by its configuration, then its default. Another runtime may lie
# beside it. `uses_containerd` fails unless RUNTIME is containerd, and `uses_unit` unless it is at the usual socket: at another one may
# be another containerd than that of the unit, such as that of k3s. `containerd_says` prints the version of the containerd that runs, or of
# the file in PATH if that one cannot be asked.
# uses: parts/prelude.sh parts/in-use.sh parts/kubelet-process.sh

find_runtime() {
  find_kubelet
  words=$KUBELET_WORDS
  [ -n "$words" ] || words=$(words_in_files)
  RUNTIME=$(printf '%s\n' "$words" | sed -n '/^--container-runtime-endpoint$/{n;p;}; s/^.*--container-runtime-endpoint=//p' | tail -n 1)
  [ -n "$RUNTIME" ] || RUNTIME=$(sed -n 's/^containerRuntimeEndpoint: *//p' "$R/var/lib/kubelet/config.yaml" 2>/dev/null | tr -d "\"'") || true
  RUNTIME=${RUNTIME:-unix:///run/containerd/containerd.sock}
}
uses_containerd() { case ${RUNTIME##*/} in *containerd*) ;; *) return 1 ;; esac; }
uses_unit() { case ${RUNTIME#unix://} in /run/containerd/containerd.sock | /var/run/containerd/containerd.sock) ;; *) return 1 ;; esac; }
containerd_says() {
  said_by "$(main_pid containerd)" 2>/dev/null || containerd --version 2>/dev/null
}
