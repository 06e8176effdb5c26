# `seen WHAT` fails unless the journal says WHAT of this step; `note WHAT` writes it down. WHAT is begun, failed or done.
# Needs ROLLOUT and STEP.
# uses: parts/prelude.sh parts/journal.sh

seen() { [ -e "$J" ] && grep -qxF -- "$ROLLOUT $STEP $1" "$J"; }
note() {
  { [ ! -e "$J" ] || cat "$J"; printf '%s\n' "$ROLLOUT $STEP $1"; } >"$J.new"
  sync "$J.new"
  mv "$J.new" "$J"
}
