/** The argument with which a user names a plan, beside the option --plan. */
import { Argument } from 'commander';
import type { CommandCall } from '../cli/program.ts';
import { RefitError } from '../util/errors.ts';

/** Returns the argument. `what` says what the plan is for, such as `only this plan`. */
export function planArgument(what: string): Argument {
  return new Argument('[plan]', `${what}, as with --plan`);
}

/** Returns the plan that the user named in the argument or in --plan. Throws REFIT_USAGE if the two differ. */
export function planOf(
  { plan }: { readonly plan?: string | undefined },
  { argument }: Pick<CommandCall, 'argument'>,
): { readonly plan?: string } {
  const named = plan ?? argument;
  if (argument !== undefined && argument !== named)
    throw new RefitError(
      'REFIT_USAGE',
      `the plan is named twice: ${argument}, and --plan ${plan}; name it once`,
    );
  return named === undefined ? {} : { plan: named };
}
