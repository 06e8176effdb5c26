# Again if the manifest was edited since. On a host that has all of NAMES, `stage` stages nothing.
[ "$(version_of containerd "$D/staged/containerd")" = "$VERSION" ] || stage
if [ -e "$D/staged/containerd" ]; then
  for name in $NAMES; do keep "$name" "$(file_of "$name")"; done
  # Until the kubelet works with it, or all is put back.
  : >"$D/previous/.containerd"
  sync "$D/previous/.containerd"
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
else
  # Its file may have been replaced without a restart.
  case $(readlink "/proc/$(systemctl show -p MainPID --value containerd)/exe") in
  *' (deleted)') systemctl restart containerd ;;
  esac
fi
