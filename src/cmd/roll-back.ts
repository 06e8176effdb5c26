/** Implements `refit rollback` for plans, and for the objects for which plans are made. */
import type { DialectModule } from '../cli/contract/dialect-module.ts';
import type { ReversibleParts } from '../cli/contract/roll-back.ts';
import type { RollBackFlags } from '../cli/controls/roll-back.ts';
import { rollBackPlan } from '../cli/controls/roll-back-plan.ts';
import { RefitError } from '../util/errors.ts';

export async function rollBack(
  { namespace, ...flags }: RollBackFlags & { readonly namespace?: string },
  parts: ReversibleParts,
  modules: readonly Pick<DialectModule, 'objectRollBack'>[],
): Promise<void> {
  const { plan: named } = flags;
  const ofObject = modules
    .flatMap(({ objectRollBack }) => objectRollBack ?? [])
    .find((each) => named !== undefined && each.isMeant(named));
  if (named !== undefined && ofObject !== undefined) {
    const rollBackObject = await ofObject.load();
    return await rollBackObject(named, { ...flags, namespace }, parts);
  }
  if (namespace !== undefined)
    throw new RefitError(
      'REFIT_USAGE',
      '--namespace is only for Machines and their owners; write the namespace before the name of the plan, as NAMESPACE/NAME',
    );
  if (flags.reason === undefined)
    throw new RefitError('REFIT_USAGE', '--reason is missing: say why the plan goes back');
  const { reason } = flags;
  await rollBackPlan({ ...flags, reason }, parts);
}
