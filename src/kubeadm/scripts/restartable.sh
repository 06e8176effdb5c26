# shellcheck shell=sh disable=SC2154
# What a restart of containerd would end, and what it needs.
[ -n "$(file_of containerd)" ] || echo "no containerd in PATH ($PATH): leave containerd out of the manifest"
case $(systemctl show -p KillMode --value containerd 2>/dev/null) in
control-group | mixed) echo "the unit of containerd lacks KillMode=process: its restart would end all containers" ;;
esac
