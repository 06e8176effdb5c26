# All scripts for a host begin with this file. It makes them end at the first error, defines the folders of the host,
# and has functions that read and replace files. Tests set REFIT_ROOT to a directory that replaces the root of the host.

set -eu
# ssh may pass on the locale of the person who runs it. That locale would change messages and the order of sorted lines.
export LC_ALL=C
R=${REFIT_ROOT:-}
D=$R/var/lib/refit
MANIFESTS=$R/etc/kubernetes/manifests
BACKUPS=$R/etc/kubernetes/tmp
fail() { printf '%s\n' "$*"; exit 1; }
# `container_of MANIFEST [COMPONENT]` prints the container of a static pod that is the component: `image=IMAGE`, then a
# line `word=WORD` for each word of its command and its arguments. The component is named after the file, unless
# COMPONENT names it. It is the container with the name of the component, or else the first one that runs the program of
# that name. People add containers to these pods, so neither the first container nor any init container counts. It
# prints nothing if no container is the component. A file without a list of containers is read as one container. The
# kubelet reads only the first document of a file, so this function does, too.
container_of() (
  name=${1##*/}
  awk -v component="${2:-${name%.yaml}}" '
    function scalar(text, quote, at) {
      quote = substr(text, 1, 1)
      if (quote == "\"" || quote == "\047") {
        at = index(substr(text, 2), quote)
        return at ? substr(text, 2, at - 1) : substr(text, 2)
      }
      sub(/[ \t]+#.*$/, "", text)
      sub(/[ \t]+$/, "", text)
      return text
    }
    function add_word(word) {
      if (key == "command" && program == "") program = word
      words = words "word=" word "\n"
    }
    # Adds the words of a list in one line, such as ["kube-apiserver", "--secure-port=6443"].
    function add_words(text, word, quote) {
      sub(/^\[/, "", text)
      for (;;) {
        sub(/^[ ,]+/, "", text)
        if (text == "" || text ~ /^]/) return
        quote = substr(text, 1, 1)
        if (quote == "\"" || quote == "\047") {
          word = scalar(text)
          text = substr(text, length(word) + 3)
        } else {
          match(text, /^[^],]*/)
          word = substr(text, 1, RLENGTH)
          text = substr(text, RLENGTH + 1)
          sub(/ +$/, "", word)
        }
        add_word(word)
      }
    }
    function end_item() {
      sub(/.*\//, "", program)
      if (name == component) named = "image=" image "\n" words
      else if (program == component && runs == "") runs = "image=" image "\n" words
      name = image = words = program = key = ""
      field = -1
    }
    { sub(/\r$/, "") }
    /^[ \t]*(#|$)/ { next }
    /^---/ { if (is_begun) exit; next }
    { is_begun = 1; indent = match($0, /[^ ]/) - 1 }
    /^ *(- +)?image:/ && loose_image == "" { loose_image = $0; sub(/^ *(- +)?image: */, "", loose_image) }
    /^ *- +["\047]?--/ { word = $0; sub(/^ *- +/, "", word); loose = loose "word=" scalar(word) "\n" }
    in_list && (indent < list || (indent == list && !/^ *-( |$)/)) { end_item(); in_list = 0 }
    indent == 0 && /^["\047]?[a-zA-Z]/ { section = $0; gsub(/["\047]/, "", section); sub(/:.*/, "", section); depth = 0; next }
    section == "spec" && depth == 0 { depth = indent }
    !in_list && section == "spec" && indent == depth && /^ *containers: *(#.*)?$/ {
      in_list = has_list = 1
      list = indent
      dash = field = -1
      next
    }
    !in_list { next }
    /^ *-( |$)/ && (dash < 0 || indent == dash) {
      end_item()
      dash = indent
      sub(/-/, " ")
      if (!/[^ ]/) next
      indent = match($0, /[^ ]/) - 1
    }
    field < 0 { field = indent }
    indent == field && !/^ *- / {
      key = substr($0, indent + 1)
      value = key
      gsub(/["\047]|:.*/, "", key)
      sub(/^[^:]*: */, "", value)
      if (key == "name") name = scalar(value)
      if (key == "image") image = scalar(value)
      if ((key == "command" || key == "args") && value ~ /^\[/) add_words(value)
      next
    }
    (key == "command" || key == "args") && /^ *- / { sub(/^ *- +/, ""); add_word(scalar($0)) }
    END {
      end_item()
      if (has_list) printf "%s", named != "" ? named : runs
      else if (loose_image loose != "") printf "image=%s\n%s", scalar(loose_image), loose
    }' "$1" 2>/dev/null || true
)
image_of() { container_of "$@" | sed -n 's/^image=//p'; }
# `flag NAME MANIFEST` prints the value of a flag of a static pod; nothing if the flag or the manifest is missing. If a
# flag is there twice, the component uses the last one.
flag() { container_of "$2" | sed -n "s/^word=--$1=//p; /^word=--$1\$/{n;s/^word=//p;}" | tail -n 1; }
# A copy of a file does not have its SELinux context, capabilities, ACL and other extended attributes. `preserved FILE`
# prints the kinds of attributes that cp can set on this host. It tests this with FILE, which must be a file of Refit.
# The test is needed because cp of BusyBox does not have the option, and other versions of cp have the option but may
# fail.
preserved() {
  for kinds in mode,ownership,xattr,context mode,ownership,xattr mode,ownership; do
    case $kinds in *context) [ -e /sys/fs/selinux/enforce ] || continue ;; esac
    ! cp --attributes-only --preserve="$kinds" "$1" "$1.try" >/dev/null 2>&1 || { printf '%s\n' "$kinds" && break; }
  done
  rm -f "$1.try"
}
# `attributes OLD NEW` sets the attributes of OLD on NEW, which must be a file of Refit. If an attribute cannot be set,
# it prints the reason and fails.
attributes() {
  kinds=$(preserved "$2")
  [ -n "$kinds" ] || return 0
  why=$(cp --attributes-only --preserve="$kinds" "$1" "$2" 2>&1) && return 0
  printf '%s\n' "$2 cannot get the owner, mode and extended attributes of $1: $why"
  return 1
}
copy_whole() { cp -p "$1" "$2" && attributes "$1" "$2"; }
# `like OLD NEW` gives NEW the mode, owner and extended attributes of OLD, which NEW will replace. If that fails, it
# ends the step.
like() {
  [ -e "$1" ] || return 0
  attributes "$1" "$2" || { rm -f "$2" && exit 1; }
  # These two attributes contain signatures of the content of OLD. With these attributes, a kernel that checks
  # signatures would not run NEW.
  for name in security.ima security.evm; do setfattr -x "$name" -- "$2" >/dev/null 2>&1 || true; done
}
# `place NEW FILE` replaces FILE with a copy of NEW. FILE is never incomplete, and it is not empty after a power cut,
# because the copy is renamed only after it is written to the disk. Until then the name of the copy begins with a dot,
# so the kubelet ignores it.
place() (
  new=${2%/*}/.${2##*/}.refit
  cp -p "$1" "$new" && { [ -e "$2" ] || attributes "$1" "$new"; } && like "$2" "$new" && sync "$new" && mv "$new" "$2"
)
# `place_back BACKUP FILE` works like `place`, but ignores attributes that cannot be set. A host without a working file
# is worse than a host whose file lacks an attribute.
place_back() (
  new=${2%/*}/.${2##*/}.refit
  cp -p "$1" "$new" && { attributes "$1" "$new" || true; } && sync "$new" && mv "$new" "$2"
)
