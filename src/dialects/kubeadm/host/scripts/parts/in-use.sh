# These functions distinguish the executable of a running process from the file with the same name in PATH, because the
# two may be different files.
# uses: parts/prelude.sh parts/packages.sh

# `main_pid UNIT` prints the id of the process that systemd runs for the unit. It prints 0 if no process runs, and
# nothing if this cannot be determined.
main_pid() {
  pid=$(systemctl show -p MainPID --value "$1" 2>/dev/null) || pid=
  case $pid in *[!0-9]*) pid= ;; esac
  printf '%s\n' "$pid"
}
# `said_by PID` prints the version that the executable of the process reports, even if its file was removed from its
# folder. Root runs the executable. So it is opened only once, and it must be a file that only root can change.
said_by() (
  exec 9<"$R/proc/$1/exe"
  owner=$(stat -Lc %u /proc/self/fd/9) mode=$(stat -Lc %a /proc/self/fd/9)
  # Guard process-owner. Root runs no program of another user.
  [ "$owner" = 0 ] || [ "$owner" = "$(id -u)" ] || exit 1
  # Guard process-mode. Root runs no program that others can change.
  [ $((0$mode & 18)) = 0 ] || exit 1
  /proc/self/fd/9 --version
)
# `another_runs NAME PID` prints a sentence if the process does not run the first file in PATH, which is the file that
# an upgrade would replace. It prints nothing if the process runs that file.
another_runs() {
  running=$(readlink "$R/proc/$2/exe" || true) in_path=$(file_of "$1")
  # If the file of a process was replaced, the link ends in " (deleted)". In this case the program has not been
  # restarted since then.
  case $running in '' | *' (deleted)' | "$in_path") return 0 ;; esac
  [ -z "$in_path" ] ||
    printf '%s\n' "the $1 that runs is ${running#"$R"}, but the upgrade would replace ${in_path#"$R"}, the first in PATH ($PATH): if that one was put there since the start, restart the service $1; otherwise set path in the manifest, or remove the file that is not used"
}
