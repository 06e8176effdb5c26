# `seen WHAT` fails unless the journal records WHAT for this step. `note WHAT` adds it to the journal. WHAT is begun,
# failed or done. Needs ROLLOUT and STEP.
# uses: parts/prelude.sh parts/journal.sh

seen() { [ -e "$J" ] && grep -qxF -- "$ROLLOUT $STEP $1" "$J"; }
note() {
  { [ ! -e "$J" ] || cat "$J"; printf '%s\n' "$ROLLOUT $STEP $1"; } >"$J.new"
  sync "$J.new"
  mv "$J.new" "$J"
}
