#!/bin/sh
# Starts a machine: `enter.sh GROUP DIRECTORY NAME ADDRESS PARTS`. GROUP is its cgroup below each hierarchy. The machine lives as
# long as this process: killing it with SIGKILL is a power cut.
set -eu
group=$1
shift
join() {
  mkdir -p "$1/$group"
  for file in cpuset.cpus cpuset.mems; do
    # In cgroup version 1 both files are empty in a new group, and no process can run in such a group.
    [ ! -e "$1/$file" ] || { at=$1; for part in $(echo "$group" | tr / ' '); do cat "$at/$file" >"$at/$part/$file"; at=$at/$part; done; }
  done
  echo $$ >"$1/$group/cgroup.procs"
}
# In cgroup version 2 a group has only the controllers that its parent passes on.
pass_on() {
  for controller in $(cat "$1/cgroup.controllers"); do echo "+$controller" >"$1/cgroup.subtree_control" || true; done
}
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir -p "/sys/fs/cgroup/$group"
  pass_on /sys/fs/cgroup
  pass_on "$(dirname "/sys/fs/cgroup/$group")"
  join /sys/fs/cgroup
else
  for hierarchy in /sys/fs/cgroup/*/; do
    [ -e "$hierarchy/cgroup.procs" ] && [ ! -e "$hierarchy/cgroup.controllers" ] || continue
    join "${hierarchy%/}"
  done
fi
exec unshare --cgroup --net --mount --uts --ipc --pid --fork --kill-child --propagation private sh "$(dirname "$0")/boot.sh" "$@"
