# shellcheck shell=sh disable=SC2154
# Only what is staged: a host that has the version already is left alone.
if [ -e "$D/staged/containerd" ]; then
  for name in $NAMES; do keep "$name" "$(file_of "$name")"; done
  if [ -d "$D/staged/containerd.packages" ]; then
    install_package containerd
  else
    folder=$(dirname "$(file_of containerd)")
    for name in $NAMES; do
      file=$(file_of "$name")
      place "$D/staged/$name" "${file:-$folder/$name}"
    done
  fi
  systemctl restart containerd
fi
