/** What the ways of all dialects share: how they refuse an upgrade, and how they ask the user. */
import { RefitError } from '../../util/errors.ts';
import { isConfirmed } from '../confirm.ts';
import type { CommandParts } from '../contract/object-commands.ts';
import type { UpgradeFlags } from '../contract/upgrade-way.ts';
import { say } from '../controls/control-command.ts';

/** Throws REFIT_CONTROL. `hint` says what helps. */
export function refuseUpgrade(message: string, hint: string): never {
  throw new RefitError('REFIT_CONTROL', message, { hint });
}

/** Asks the user, unless `--yes` is given. Resolves with true if the user agrees. */
export async function isUpgradeWanted(
  question: string,
  { yes }: Pick<UpgradeFlags, 'yes'>,
  parts: Pick<CommandParts, 'abort' | 'output'>,
): Promise<boolean> {
  const unasked = 'refit upgrade asks before it writes, and this is no terminal: pass --yes';
  const { abort } = parts;
  if (yes === true || (await isConfirmed(question, { unasked, abort }))) return true;
  say(parts, ['Nothing was written.']);
  return false;
}
