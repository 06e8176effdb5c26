# Looks at all files in the folder of static pods. `manifest_copies` prints a line for each file that defines the pod of
# a component again. `refuse_copies` ends the script if a control-plane host has such a file. `other_manifests` prints
# warnings about further files. `unread_manifests` prints a line for each manifest of kubeadm that has no container of
# its component.
# uses: parts/prelude.sh parts/backups.sh

# The kubelet reads each regular file in the folder, also behind a link, whatever its name ends with. It skips only
# folders and names that begin with a dot: extractFromDir in pkg/kubelet/config/file.go of Kubernetes lists `[^.]*`.
WHY='the kubelet reads every file there whose name does not begin with a dot'
# `pod_of FILE` prints `NAMESPACE/NAME` of the pod in a file, as YAML or JSON; nothing if the file has no pod.
pod_of() {
  case $(tr -d ' \t\r\n' <"$1" | head -c 1) in
  '{')
    tr -d '\r\n' <"$1" | sed 's/"\(annotations\|labels\)" *: *{[^{}]*} *,\{0,1\}//g' |
      sed -n '/"kind" *: *"Pod"/s/.*"metadata" *: *{\([^{}]*\)}.*/\1/p' |
      awk '{ name = $0; space = $0
        if (!sub(/.*"name" *: *"/, "", name)) exit
        sub(/".*/, "", name)
        if (sub(/.*"namespace" *: *"/, "", space)) sub(/".*/, "", space); else space = "default"
        print space "/" name }'
    ;;
  *)
    awk '
      function value(text) {
        sub(/^[^:]*: */, "", text)
        sub(/[ \t]+#.*$/, "", text)
        gsub(/["\047\r]/, "", text)
        return text
      }
      /^[ \t]*(#|\r?$)/ { next }
      /^---/ { if (is_begun) exit; next }
      { is_begun = 1; indent = match($0, /[^ ]/) - 1 }
      indent == 0 { section = $0; sub(/:.*/, "", section); depth = 0; if (section == "kind") kind = value($0); next }
      section == "metadata" && depth == 0 { depth = indent }
      section == "metadata" && indent == depth && /^ *name:/ { name = value($0) }
      section == "metadata" && indent == depth && /^ *namespace:/ { space = value($0) }
      END { if (kind == "Pod" && name != "") print (space == "" ? "default" : space) "/" name }' "$1"
    ;;
  esac 2>/dev/null || true
}
is_of_kubeadm() { case ${1##*/} in etcd.yaml | kube-apiserver.yaml | kube-controller-manager.yaml | kube-scheduler.yaml) ;; *) return 1 ;; esac; }
# `each_other FUNCTION` calls a function for each file that the kubelet reads and that is not one of kubeadm's.
each_other() {
  for other in "$MANIFESTS"/*; do
    if [ -f "$other" ] && ! is_of_kubeadm "$other"; then "$1" "$other"; fi
  done
}
copy() {
  for component in $COMPONENTS; do
    [ "$(pod_of "$1")" != "kube-system/$component" ] ||
      printf '%s\n' "${1#"$R"} defines the pod $component a second time, and $WHY: kubeadm does not upgrade this file, and the kubelet may run it instead of $component.yaml; move it to another folder"
  done
}
manifest_copies() { each_other copy; }
refuse_copies() {
  is_controller || return 0
  problem=$(manifest_copies)
  [ -z "$problem" ] || fail "$problem"
}
# Prints at most one warning about a file.
other() {
  pod=$(pod_of "$1")
  for component in $COMPONENTS; do
    [ "$pod" != "kube-system/$component" ] || return 0
  done
  if [ -z "$pod" ]; then
    printf '%s\n' "warn=${1#"$R"} is no manifest of a pod, and $WHY: move it to another folder"
    return 0
  fi
  for same in "$MANIFESTS"/*; do
    if [ ! -f "$same" ] || [ "$same" = "$1" ] || [ "$(pod_of "$same")" != "$pod" ]; then continue; fi
    printf '%s\n' "warn=${1#"$R"} and ${same##*/} define the same pod ${pod#*/}, and $WHY: the kubelet runs only one of them; move the other one to another folder"
    return 0
  done
  for component in $COMPONENTS; do
    [ -z "$(container_of "$1" "$component")" ] || [ ! -e "$MANIFESTS/$component.yaml" ] || ! runs_component "$1" "$component" ||
      printf '%s\n' "warn=${1#"$R"} runs another $component: kubeadm does not upgrade it"
  done
}
# A file without a list of containers is printed as one container, and runs nothing.
runs_component() { grep -q '^ *containers:' "$1"; }
other_manifests() { each_other other; }
unread_manifests() {
  for component in $COMPONENTS; do
    file=$MANIFESTS/$component.yaml
    [ ! -s "$file" ] || [ -n "$(container_of "$file")" ] ||
      printf '%s\n' "hard=$component.yaml has no container that is named $component or runs it, in the form that kubeadm writes: Refit cannot read its version and flags"
  done
}
