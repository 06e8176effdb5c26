/** Implements `refit rollback`: finds the plan, and calls the dialect of the plan. */
import type { DialectModule } from '../cli/contract/dialect-module.ts';
import type { RollBackCommand, RollBackDeleted } from '../cli/contract/roll-back.ts';
import { choosePlan, inspectPlans } from '../cli/controls/control-command.ts';
import type { ReasonedFlags, RollBackFlags } from '../cli/controls/roll-back.ts';
import { inSession, type Session, type SessionParts } from '../cli/status/status-session.ts';
import { RefitError } from '../util/errors.ts';
import { inRepository } from '../util/home.ts';

/** What the command needs to know about a dialect. */
type RolledBackDialect = Pick<DialectModule, 'rollBack' | 'objectRollBack'> & {
  readonly name: string;
};

export async function rollBack(
  { namespace, ...flags }: RollBackFlags & { readonly namespace?: string },
  parts: SessionParts,
  modules: readonly RolledBackDialect[],
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
  await rollBackPlan({ ...flags, reason }, parts, modules);
}

async function rollBackPlan(
  flags: ReasonedFlags,
  parts: SessionParts,
  modules: readonly RolledBackDialect[],
): Promise<void> {
  await inSession(flags, parts, 'refit-control', async (session) => {
    const deleted = await deletedPlan(session, flags.plan, modules);
    if (deleted !== undefined) return await deleted(flags, parts);
    const plans = await inspectPlans(session, flags.plan, parts.clock.now());
    const plan = choosePlan(plans, flags.plan);
    const module = modules.find(({ name }) => name === plan.dialect.name);
    if (module === undefined)
      throw new RefitError('REFIT_INTERNAL', `no module rolls back plans of ${plan.dialect.name}`);
    await (await commandOf(module)).plan(session, plan, flags, parts);
  });
}

/** Resolves with the function that rolls back the deleted plan that the user means; undefined if the user means none. */
async function deletedPlan(
  session: Session,
  named: string | undefined,
  modules: readonly RolledBackDialect[],
): Promise<RollBackDeleted | undefined> {
  for (const { rollBack: way } of modules) {
    const command = way.kind === 'command' ? await way.load() : undefined;
    const deleted = command?.deleted(session, named);
    if (deleted !== undefined) return deleted;
  }
  return undefined;
}

/** Throws REFIT_CONTROL if people take the plans of the dialect back without this command. */
async function commandOf({ rollBack: way }: RolledBackDialect): Promise<RollBackCommand> {
  if (way.kind === 'command') return await way.load();
  throw new RefitError(
    'REFIT_CONTROL',
    `refit rollback does not write plans of this dialect: ${way.instead}`,
    { hint: `do that instead: see ${inRepository('docs/roll-back.md')}` },
  );
}
