# `kubelet_facts` prints the version of the kubelet, its client certificate, and the number of its crashes. The facts
# are about the running process, because the host may also have kubelet files that this process does not use.
# uses: parts/prelude.sh parts/packages.sh parts/in-use.sh parts/kubelet-process.sh parts/certificate-fact.sh

version_in_use() {
  said=$(said_by "$KUBELET_PID") || return 1
  case $said in 'Kubernetes v'*) printf '%s\n' "${said#Kubernetes }" ;; *) return 1 ;; esac
}
# `client_certificate KUBECONFIG` prints `data BASE64` or `file PATH` for the user of the current context. It prints
# nothing if this user has no certificate.
client_certificate() {
  awk '
    function value(text) {
      sub(/^[^:]*: */, "", text)
      sub(/ +#.*$/, "", text)
      gsub(/^["\047]|["\047 ]+$/, "", text)
      return text
    }
    function end_of_item() {
      if (section == "contexts") user[name] = of
      if (section == "users") { file[name] = path; text[name] = data }
      name = of = path = data = ""
    }
    /^[a-zA-Z-]+:/ {
      end_of_item()
      section = substr($1, 1, index($1, ":") - 1)
      if (section == "current-context") current = value($0)
      dash = 0
      next
    }
    /^ *- / {
      if (dash == 0) dash = index($0, "-")
      if (index($0, "-") == dash) end_of_item()
      sub(/-/, " ")
    }
    /^ *name:/ && match($0, /[^ ]/) == dash + 2 { name = value($0) }
    /^ *user: *[^ ]/ { of = value($0) }
    /^ *client-certificate:/ { path = value($0) }
    /^ *client-certificate-data:/ { data = value($0) }
    END {
      end_of_item()
      if (text[user[current]] != "") print "data " text[user[current]]
      else if (file[user[current]] != "") print "file " file[user[current]]
    }' "$1"
}
version_fact() {
  found=
  case $KUBELET_PID in
  '') ;;
  0)
    case $(systemctl is-active kubelet 2>/dev/null) in
    inactive | failed) ;;
    *) echo 'warn=no kubelet runs on this host: the version of the file in PATH counts' ;;
    esac
    ;;
  *)
    found=$(version_in_use 2>/dev/null) ||
      printf '%s\n' "warn=the executable of the kubelet (process $KUBELET_PID) cannot be asked for its version, or somebody besides root could change it: the version of the file in PATH counts"
    ;;
  esac
  if [ -n "$found" ]; then
    another_runs kubelet "$KUBELET_PID" | sed 's/^/hard=/'
  else
    found=$(kubelet --version 2>/dev/null) || true
  fi
  printf '%s\n' "kubelet=${found#Kubernetes }"
}
client_certificate_fact() {
  kubeconfig=$(printf '%s\n' "$KUBELET_WORDS" | sed -n '/^--kubeconfig$/{n;p;}; s/^--kubeconfig=//p' | tail -n 1)
  kubeconfig=$R${kubeconfig:-/etc/kubernetes/kubelet.conf}
  if [ -s "$kubeconfig" ]; then
    used=$(client_certificate "$kubeconfig")
    case $used in
    'data '*) certificate "$kubeconfig" "$(printf '%s\n' "${used#data }" | base64 -d | first)" kubeletCertificate ;;
    'file '*)
      file=${used#file }
      case $file in /*) file=$R$file ;; *) file=${kubeconfig%/*}/$file ;; esac
      [ ! -e "$file" ] || certificate "$file" "$(first <"$file")" kubeletCertificate
      ;;
    *)
      ! grep -q client-certificate "$kubeconfig" ||
        printf '%s\n' "warn=cannot read which client certificate ${kubeconfig#"$R"} names, so nobody looks at when it ends"
      ;;
    esac
  fi
}
# Prints how many times systemd has restarted the kubelet automatically since its last regular start, and the last line
# that the kubelet itself wrote to the log.
crashes_fact() {
  restarts=$(systemctl show -p NRestarts --value kubelet 2>/dev/null) || restarts=
  case $restarts in
  '' | 0 | *[!0-9]*) ;;
  *) printf '%s\n' "kubeletCrashes=$restarts $(journalctl _SYSTEMD_UNIT=kubelet.service -n 1 -o cat --no-pager 2>/dev/null | tail -n 1 | cut -c 1-2000)" ;;
  esac
}
kubelet_facts() {
  find_kubelet
  version_fact
  client_certificate_fact
  crashes_fact
}
