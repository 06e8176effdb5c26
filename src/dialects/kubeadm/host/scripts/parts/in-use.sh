# These functions distinguish the program that runs from the file with its name in PATH, which may be another file.
# uses: parts/prelude.sh parts/packages.sh

# `main_pid UNIT` prints the process that systemd runs for the unit: 0 if none runs, nothing if nobody can say.
main_pid() {
  pid=$(systemctl show -p MainPID --value "$1" 2>/dev/null) || pid=
  case $pid in *[!0-9]*) pid= ;; esac
  printf '%s\n' "$pid"
}
# `said_by PID` prints what the executable of the process says of its version, though its file may be gone from its folder. Root
# runs it, so it is opened once, and only root may be able to change what was opened.
said_by() (
  exec 9<"$R/proc/$1/exe"
  owner=$(stat -Lc %u /proc/self/fd/9) mode=$(stat -Lc %a /proc/self/fd/9)
  [ "$owner" = 0 ] || [ "$owner" = "$(id -u)" ] || exit 1
  [ $((0$mode & 18)) = 0 ] || exit 1
  /proc/self/fd/9 --version
)
# `another_runs NAME PID` says that the process runs another file than the first in PATH, which an upgrade would replace; nothing
# if it runs that one.
another_runs() {
  running=$(readlink "$R/proc/$2/exe" || true) in_path=$(file_of "$1")
  # A file that was replaced ends in " (deleted)": the program has not been started again since.
  case $running in '' | *' (deleted)' | "$in_path") return 0 ;; esac
  [ -z "$in_path" ] ||
    printf '%s\n' "the $1 that runs is ${running#"$R"}, but the upgrade would replace ${in_path#"$R"}, the first in PATH ($PATH): if that one was put there since the start, restart the service $1; otherwise set path in the manifest, or remove the file that is not used"
}
