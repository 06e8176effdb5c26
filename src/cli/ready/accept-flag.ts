/** Reads `--accept CHECK=REASON` of the commands that make the checks of `refit ready`. */
import { type Accepted, CHECK_NAMES, type CheckName } from '../../ready/finding.ts';
import { RefitError } from '../../util/errors.ts';

/** Throws REFIT_USAGE unless each text names a check and a reason, and no check is named twice. */
export function readAccepted(texts: readonly string[]): Accepted {
  const accepted = new Map<CheckName, string>();
  for (const text of texts) {
    const [, name = '', reason = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
    const check = CHECK_NAMES.find((each) => each === name);
    if (check === undefined || reason.trim() === '')
      throw new RefitError(
        'REFIT_USAGE',
        `--accept must be CHECK=REASON with one of the checks ${CHECK_NAMES.join(', ')}, and a reason, found "${text}"`,
      );
    if (accepted.has(check))
      throw new RefitError(
        'REFIT_USAGE',
        `--accept names the check ${check} twice; write one reason`,
      );
    accepted.set(check, reason.trim());
  }
  return accepted;
}
