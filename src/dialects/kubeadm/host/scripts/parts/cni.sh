# `cni_facts` warns about a network plugin that containerd cannot use. Without the warning, the failure would appear
# only when a pod starts and its sandbox cannot be created. containerd uses the first configuration by name.
# uses: parts/prelude.sh parts/runtime.sh

values_of() { grep -o "\"$1\" *: *\"[^\"]*\"" "$2" | sed 's/.*"\([^"]*\)"$/\1/'; }
# `find_configuration` sets `cni` to the first configuration by name; empty if there is none.
find_configuration() {
  cni=
  for file in "$R"/etc/cni/net.d/*; do
    case $file in *.conf | *.conflist | *.json) ;; *) continue ;; esac
    [ -e "$file" ] || continue
    cni=$file
    return
  done
}
cni_facts() {
  # Other runtimes have different rules for the configuration and the folders of plugins.
  uses_unit || return 0
  find_configuration
  if [ -n "$cni" ]; then
    wanted=$(values_of cniVersion "$cni" | head -n 1)
    # The newest version of CNI that the library in containerd 1.6 and 1.7 supports, and the newest version that the
    # library in containerd 2 supports.
    case $(containerd_says) in
    *' v1.'* | *' 1.'*) known=1.0.0 ;;
    *) known=1.1.0 ;;
    esac
    [ "$(printf '%s\n' "${wanted:-0}" "$known" | sort -V | tail -n 1)" = "$known" ] ||
      printf '%s\n' "warn=${cni#"$R"} is of CNI $wanted, and this containerd knows $known at most: upgrade containerd first"
    own=$(sed -n 's/^ *bin_dirs\{0,1\} *= *\[\{0,1\}"\([^"]*\)".*/\1/p' "$R/etc/containerd/config.toml" 2>/dev/null || true)
    # `k8s` is the type of Calico's policy, which is not a plugin.
    for plugin in $(values_of type "$cni" | grep -vx k8s); do
      found=
      for folder in $own /opt/cni/bin /usr/lib/cni /usr/libexec/cni; do [ ! -x "$R$folder/$plugin" ] || found=yes; done
      [ -n "$found" ] || printf '%s\n' "warn=no CNI plugin $plugin in /opt/cni/bin, which ${cni#"$R"} names: pods will not start on this host"
    done
  fi
}
