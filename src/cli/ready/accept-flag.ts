/** Reads `--accept CHECK=REASON` of the commands that make the checks of `refit ready`. */
import { type Accepted, CHECK_NAMES, type CheckName } from '../../ready/finding.ts';
import { RefitError } from '../../util/errors.ts';

/** Throws REFIT_USAGE unless each text names a check and a reason. */
export function readAccepted(texts: readonly string[]): Accepted {
  return new Map(
    texts.map((text) => {
      const [, name = '', reason = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
      const check = CHECK_NAMES.find((each) => each === name);
      if (check !== undefined && reason.trim() !== '') return [check, reason.trim()] as const;
      throw new RefitError(
        'REFIT_USAGE',
        `--accept must be CHECK=REASON with one of the checks ${CHECK_NAMES.join(', ')}, and a reason, found "${text}"`,
      );
    }),
  ) satisfies ReadonlyMap<CheckName, string>;
}
