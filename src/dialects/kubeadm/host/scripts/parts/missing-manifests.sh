# `missing_manifests` prints a line for each manifest that is missing although there is a backup: `missing=NAME run
# PATH`, `missing=NAME hand PATH` or `missing=NAME refused REASON`.
# uses: parts/prelude.sh parts/backups.sh

missing_manifests() {
  for name in $COMPONENTS; do
    [ ! -e "$MANIFESTS/$name.yaml" ] || continue
    file=$(of_run "$name")
    found=${file:+run $file}
    [ -n "$found" ] || found=$(by_hand "$name")
    [ -z "$found" ] || printf '%s\n' "missing=$name $found"
  done
}
