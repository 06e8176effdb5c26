# Reads with which flags systemd will start the kubelet the next time. `words_at_start` prints lines `FILE WORD` with
# each word in the unit, its drop-ins and its files of environment variables. `words_in_files` prints the words alone.
# `flag_at_start NAME` prints the value of a flag; nothing if no file has it. `flag_facts` prints each flag as a fact
# `kubeletFlag=FILE --NAME`. Only the flag for feature gates has its value there. The running kubelet may have other
# flags.
# uses: parts/prelude.sh

# `unit_files` prints the files of the unit in the order in which systemd reads them. A drop-in replaces another one of
# the same name in a folder of lower priority.
unit_files() {
  for folder in etc run usr/local/lib usr/lib lib; do
    unit=$R/$folder/systemd/system/kubelet.service
    if [ -f "$unit" ]; then
      printf '%s\n' "$unit"
      break
    fi
  done
  for folder in lib usr/lib usr/local/lib run etc; do
    for file in "$R/$folder/systemd/system/kubelet.service.d"/*.conf; do
      [ ! -e "$file" ] || printf '%s %s\n' "${file##*/}" "$file"
    done
  done | awk '{ last[$1] = $2 } END { for (name in last) print name, last[name] }' | sort | cut -d ' ' -f 2
}
# `environment_files` prints the files that the unit names, or those that the unit of kubeadm names if there is no unit.
environment_files() {
  named=$(unit_files | while IFS= read -r file; do sed -n 's/^[[:space:]]*EnvironmentFile=-\{0,1\}//p' "$file"; done)
  for file in ${named:-/var/lib/kubelet/kubeadm-flags.env /etc/default/kubelet /etc/sysconfig/kubelet}; do
    [ ! -f "$R$file" ] || printf '%s\n' "$R$file"
  done
}
words_at_start() {
  { unit_files && environment_files; } | while IFS= read -r file; do
    # systemd treats lines that begin with `#` or `;` as comments, and separates words also at tabs. The name of a
    # variable may precede the first word of its value.
    sed 's/^[[:space:]]*[#;].*//' "$file" | tr "\"'\t\\\\" '    ' | tr ' ' '\n' |
      sed -n "/./{s/^[A-Z_]*=\\(--\\)/\\1/;s|^|${file#"$R"} |;p;}"
  done
}
words_in_files() { words_at_start | cut -d ' ' -f 2-; }
# `flag_in NAME` reads words, one per line. It prints the last value of the flag, because the kubelet uses that value.
flag_in() { sed -n "/^--$1\$/{n;p;}; s/^--$1=//p" | tail -n 1; }
flag_at_start() { words_in_files | flag_in "$1"; }
flag_facts() {
  words_at_start | awk '
    function name_of(word) { sub(/=.*/, "", word); return word }
    file == $1 && gates { print "kubeletFlag=" $1 " --feature-gates=" $2; gates = 0; next }
    { file = $1; gates = 0 }
    $2 == "--feature-gates" { gates = 1; next }
    $2 ~ /^--feature-gates=/ { print "kubeletFlag=" $1 " " $2; next }
    $2 ~ /^--[a-zA-Z]/ { print "kubeletFlag=" $1 " " name_of($2) }'
}
