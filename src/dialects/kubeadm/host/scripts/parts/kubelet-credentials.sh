# `kubelet_credentials` prints with which credentials the kubelet will start the next time, and what is wrong with them.
# The running kubelet may have read other files, so a kubelet that works proves nothing about its next start. The
# client certificate is printed as a fact `kubeletCertificate`, and each authority that the kubelet trusts as
# `kubeletTrusts=BASE64`. A fact `bootstrap=PATH` names a kubeconfig with which the kubelet would ask for a new
# certificate. Needs KUBELET_PID and KUBELET_WORDS.
# uses: parts/prelude.sh parts/kubelet-process.sh parts/kubelet-start.sh parts/certificate-fact.sh

# `kubeconfig_of FILE` prints the fields of the current context's user and cluster, as lines `FIELD VALUE`.
kubeconfig_of() {
  awk '
    function value(text) {
      sub(/^[^:]*: */, "", text)
      sub(/ +#.*$/, "", text)
      gsub(/^["\047]|["\047 ]+$/, "", text)
      return text
    }
    function end_of_item(field) {
      for (field in fields) { found[section, name, field] = fields[field]; delete fields[field] }
      name = ""
    }
    function print_fields(of, item, list, count, i) {
      count = split(list, names, " ")
      for (i = 1; i <= count; i++) if ((of, item, names[i]) in found) print names[i], found[of, item, names[i]]
    }
    { sub(/\r$/, "") }
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
    /^ *name:/ && match($0, /[^ ]/) == dash + 2 { name = value($0); next }
    /^ *(exec|auth-provider):/ { fields["ANOTHER"] = "yes"; next }
    /^ *(token|tokenFile|username): *[^ ]/ { fields["ANOTHER"] = "yes"; next }
    /^ *[a-z-]+: *[^ ]/ { field = $1; sub(/:.*/, "", field); fields[field] = value($0) }
    END {
      end_of_item()
      print_fields("users", found["contexts", current, "user"], "client-certificate client-certificate-data client-key client-key-data ANOTHER")
      print_fields("clusters", found["contexts", current, "cluster"], "certificate-authority certificate-authority-data server")
    }' "$1"
}
# `all_certificates` prints each certificate of a PEM file as one line.
all_certificates() { awk '/BEGIN CERTIFICATE/ { on = 1; text = ""; next } /END CERTIFICATE/ { if (on) print text; on = 0 } on { sub(/\r$/, ""); text = text $0 }'; }
# `field NAME` prints a field of CONFIGURATION. `path_of PATH` prints the path of a file that the kubeconfig names.
field() { printf '%s\n' "$CONFIGURATION" | sed -n "s/^$1 //p"; }
path_of() { case $1 in '') ;; /*) printf '%s\n' "$R$1" ;; *) printf '%s\n' "${KUBECONFIG_FILE%/*}/$1" ;; esac; }
# `wrong_start WHAT` prints a refusal. If the kubelet can ask for a new certificate, it prints a warning. Nothing counts
# on a host on which no kubelet runs, because the host is refused for that reason.
wrong_start() {
  case $KUBELET_PID in '' | 0) return 0 ;; esac
  if [ -n "$BOOTSTRAP" ]; then
    printf '%s\n' "warn=$1: at its next start, the kubelet must get a new certificate with $BOOTSTRAP, so check that the token in that file is valid"
  else
    printf '%s\n' "hard=$1, so the kubelet would not start again, and the upgrade restarts it: restore the file, or write a new kubeconfig for this Node with kubeadm kubeconfig user (group system:nodes)"
  fi
}
kubelet_credentials() {
  KUBECONFIG_FILE=$(flag_at_start kubeconfig)
  [ -n "$KUBECONFIG_FILE" ] || KUBECONFIG_FILE=$(printf '%s\n' "$KUBELET_WORDS" | flag_in kubeconfig)
  KUBECONFIG_FILE=$R${KUBECONFIG_FILE:-/etc/kubernetes/kubelet.conf}
  asks=$(flag_at_start bootstrap-kubeconfig)
  [ -n "$asks" ] || asks=$(printf '%s\n' "$KUBELET_WORDS" | flag_in bootstrap-kubeconfig)
  BOOTSTRAP=
  [ -z "$asks" ] || [ ! -s "$R$asks" ] || BOOTSTRAP=$asks
  [ -z "$BOOTSTRAP" ] || printf '%s\n' "bootstrap=$BOOTSTRAP"
  shown=${KUBECONFIG_FILE#"$R"}
  if [ ! -s "$KUBECONFIG_FILE" ]; then
    wrong_start "$shown, the kubeconfig of the kubelet, is missing or empty"
    return 0
  fi
  CONFIGURATION=$(kubeconfig_of "$KUBECONFIG_FILE")
  own_certificate
  trusted_authorities
  server_of_kubelet
}
own_certificate() {
  file=$(path_of "$(field client-certificate)") data=$(field client-certificate-data) key=$(path_of "$(field client-key)")
  current=$R/var/lib/kubelet/pki/kubelet-client-current.pem
  # Without a kubeconfig for its first start, the kubelet prefers the certificate that it received last.
  if [ -n "$data" ] && [ -z "$asks" ] && [ -s "$current" ] &&
    grep -qs '^rotateCertificates: *true' "$R/var/lib/kubelet/config.yaml"; then
    certificate "$current" "$(first <"$current")" kubeletCertificate
  elif [ -n "$data" ]; then
    certificate "$KUBECONFIG_FILE" "$(printf '%s\n' "$data" | base64 -d 2>/dev/null | first)" kubeletCertificate
  elif [ -n "$file" ]; then
    if [ -s "$file" ]; then
      certificate "$file" "$(first <"$file")" kubeletCertificate
    else
      wrong_start "$shown names the client certificate ${file#"$R"}, which is missing or empty"
      return 0
    fi
  elif [ -n "$(field ANOTHER)" ]; then
    return 0
  elif grep -q client-certificate "$KUBECONFIG_FILE"; then
    printf '%s\n' "warn=cannot read which client certificate $shown names, so nobody looks at when it ends"
    return 0
  else
    wrong_start "$shown has no credentials for the user of its current context"
    return 0
  fi
  if [ -n "$key" ] && [ ! -s "$key" ]; then
    wrong_start "$shown names the key ${key#"$R"}, which is missing or empty"
  elif [ -n "$key" ] && ! grep -q 'PRIVATE KEY' "$key"; then
    wrong_start "$shown names the key ${key#"$R"}, which has no private key"
  elif [ -z "$key" ] && [ -z "$(field client-key-data)" ]; then
    wrong_start "$shown has a client certificate without a key"
  fi
}
trusted_authorities() {
  file=$(path_of "$(field certificate-authority)") data=$(field certificate-authority-data)
  if [ -n "$data" ]; then
    printf '%s\n' "$data" | base64 -d 2>/dev/null | all_certificates | sed 's/^/kubeletTrusts=/'
  elif [ -n "$file" ] && [ -s "$file" ]; then
    all_certificates <"$file" | sed 's/^/kubeletTrusts=/'
  elif [ -n "$file" ]; then
    BOOTSTRAP='' wrong_start "$shown names the authority ${file#"$R"}, which is missing or empty"
  fi
}
# Asks the server whether it answers at all. With a proxy, the answer would say nothing.
server_of_kubelet() {
  server=$(field server)
  case $KUBELET_PID in '' | 0) return 0 ;; esac
  if [ -z "$server" ] || ! command -v curl >/dev/null || words_in_files | grep -qi '_proxy='; then return 0; fi
  why=$(curl -qsSk --noproxy '*' --max-time 10 -o /dev/null "$server/version" 2>&1) && return 0 || code=$?
  # These codes mean: no such host, no connection, no answer in time. With any other code, a server has answered.
  case $code in
  6 | 7 | 28) printf '%s\n' "hard=$shown names the server $server, which does not answer on this host ($why): the kubelet would not reach the cluster after its restart; correct the server in that file" ;;
  esac
}
