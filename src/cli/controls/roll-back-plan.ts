/** Rolls a plan back: finds the plan, and calls the dialect of the plan. */
import { RefitError } from '../../util/errors.ts';
import { inRepository } from '../../util/home.ts';
import type {
  ReversibleDialect,
  ReversibleParts,
  RollBackCommand,
  RollBackDeleted,
  RollBackWay,
} from '../contract/roll-back.ts';
import { inSession, type Session } from '../status/status-session.ts';
import { choosePlan, inspectPlans } from './control-command.ts';
import type { ReasonedFlags } from './roll-back.ts';

/** Shows what changes, asks the user unless `--yes` is given, and writes the plan that goes back. */
export async function rollBackPlan(flags: ReasonedFlags, parts: ReversibleParts): Promise<void> {
  const { modules } = parts;
  await inSession(flags, parts, 'refit-control', async (session) => {
    const deleted = await deletedPlan(session, flags.plan, modules);
    if (deleted !== undefined) return await deleted(flags, parts);
    const plans = await inspectPlans(session, flags.plan, parts.clock.now());
    const plan = choosePlan(plans, flags.plan);
    const module = modules.find(({ name }) => name === plan.dialect.name);
    if (module === undefined)
      throw new RefitError('REFIT_INTERNAL', `no module rolls back plans of ${plan.dialect.name}`);
    await (await commandOf(module.rollBack)).plan(session, plan, flags, parts);
  });
}

/** Resolves with the function that rolls back the deleted plan that the user means; undefined if the user means none. */
async function deletedPlan(
  session: Session,
  named: string | undefined,
  modules: readonly ReversibleDialect[],
): Promise<RollBackDeleted | undefined> {
  for (const { rollBack: way } of modules) {
    const command = way.kind === 'command' ? await way.load() : undefined;
    const deleted = command?.deleted(session, named);
    if (deleted !== undefined) return deleted;
  }
  return undefined;
}

/** Throws REFIT_CONTROL if people take the plans of the dialect back without this command. */
async function commandOf(way: RollBackWay): Promise<RollBackCommand> {
  if (way.kind === 'command') return await way.load();
  throw new RefitError(
    'REFIT_CONTROL',
    `refit rollback does not write plans of this dialect: ${way.instead}`,
    { hint: `do that instead: see ${inRepository('docs/roll-back.md')}` },
  );
}
