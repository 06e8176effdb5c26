/**
 * Rolls back the nodes of a deleted k0s Plan. The NodeRollout is not deleted with the Plan, and contains the versions
 * that the nodes ran before.
 */
import { PLAN_NAME, type Plan, plans } from '../../../api/autopilot/plan.ts';
import type { NodeRollout, NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import { chosenRun, type ReasonedFlags, recordOf } from '../../../cli/controls/roll-back.ts';
import type { Loaded } from '../../../cli/status/load.ts';
import { isNamed, noPlan } from '../../../cli/status/plan-names.ts';
import { plansIn, type Session, type SessionParts } from '../../../cli/status/status-session.ts';
import type { World } from '../../../engine/contract/world.ts';
import { sourceOf } from '../../../engine/model/rollout.ts';
import { ifNew } from '../../../kube/status-error.ts';
import { SIGNAL_DATA_ANNOTATION } from '../../../signal/names.ts';
import { failing, RefitError } from '../../../util/errors.ts';
import { listed } from '../../../util/phrases.ts';
import { autopilot } from '../plan/autopilot-dialect.ts';
import { nodesAtWork } from '../plan/autopilot-orphaned-work.ts';
import type { WaysBack } from '../plan/roll-back-plan.ts';
import { goBack, kindOf, refuseOtherLeader } from './roll-back-command.ts';

const refuse = failing('REFIT_CONTROL');

/**
 * The number of workers that go back at once. It is the lowest possible number, because no record contains how many
 * workers the deleted Plan upgraded at once.
 */
const CONCURRENT = 1;
const DELETED = { metadata: { name: PLAN_NAME } };

/**
 * Returns the objects of k0s if the user means a deleted Plan. This is the case if the user named the deleted Plan, or
 * if the user gave no name and no other plan exists. If the user gave the name of an existing plan, it always means
 * that plan.
 */
export function deletedK0sPlan({ loaded }: Session, named: string | undefined): Loaded | undefined {
  const k0s = loaded.find(({ dialect }) => dialect.name === autopilot.name);
  if (k0s === undefined || k0s.plans().length > 0) return undefined;
  const existing = plansIn(loaded).map(subjectOf);
  if (named === undefined) return existing.length === 0 ? k0s : undefined;
  const isAnother = existing.some((each) => isNamed(each, named));
  return !isAnother && isNamed(subjectOf({ dialect: autopilot, plan: DELETED }), named)
    ? k0s
    : undefined;
}

function subjectOf({ dialect, plan }: ReturnType<typeof plansIn>[number]) {
  return { dialect, plan, snapshot: { rollout: { source: sourceOf(dialect.plans, plan) } } };
}

/** Creates the Plan that rolls back a run of the deleted Plan. `k0s` is the result of `deletedK0sPlan`. */
export async function rollBackDeletedK0sPlan(
  session: Session,
  { world }: Loaded,
  flags: ReasonedFlags,
  parts: SessionParts,
): Promise<void> {
  const record = await recordOf(session, autopilot, DELETED);
  if (record === undefined)
    throw new RefitError(
      'REFIT_CONTROL',
      `${noPlan(plansIn(session.loaded), { plan: flags.plan })}, and no NodeRollout of a deleted plan records what its nodes ran before`,
      { hint: 'to go back, apply a Plan with the old version and a policy that allows Downgrade' },
    );
  const history = record.status?.history ?? [];
  // A refused run changed no node, so the run before it is rolled back.
  const run = chosenRun(history, flags, ({ phase }) => phase !== 'invalid');
  refuseOpenWork(world, record);
  await refuseOtherLeader(session, parts.clock.now());
  const create = async (plan: Plan, dryRun: boolean): Promise<void> => {
    const created = session.client.create(plans, plan, { dryRun, abort: session.abort });
    if ((await ifNew(created)) === undefined)
      refuse('a Plan was created meanwhile, so nothing was written: look at it with refit status');
  };
  const way = {
    world,
    history,
    run,
    concurrent: CONCURRENT,
    outcome: (ways: WaysBack) => outcomeOf(ways, run),
    check: async (plan: Plan) => await create(plan, true),
    write: async (plan: Plan) => await create(plan, false),
  };
  await goBack(session, way, flags, parts);
}

/** Throws REFIT_CONTROL if nodes may still do the work of the deleted Plan. */
function refuseOpenWork(world: World, { status }: NodeRollout): void {
  const working = nodesAtWork(world);
  const [first] = working;
  if (first !== undefined)
    throw new RefitError(
      'REFIT_CONTROL',
      `the Plan was deleted while nodes worked for it, and ${listed(
        working.map(({ name }) => name),
        working.length,
      )} ${working.length === 1 ? 'has' : 'have'} not finished`,
      {
        hint: `run this again when they have; if the agent of ${first.name} will never answer, remove its signal: kubectl annotate ${kindOf(first)} ${first.name} ${SIGNAL_DATA_ANNOTATION}-`,
      },
    );
  const open = status?.history?.find(({ ended }) => ended === undefined);
  if (open !== undefined)
    throw new RefitError(
      'REFIT_CONTROL',
      `the leader has not recorded yet that run ${open.id} of the deleted Plan is over`,
      {
        hint: 'let refit controller run, and run this again when `refit history` shows the Plan as deleted',
      },
    );
}

function outcomeOf({ moves }: WaysBack, run: NodeRolloutRun): string[] {
  const hasWorkers = moves.some(({ role }) => role === 'worker');
  return [
    `The Plan of run ${run.id} was deleted, so a new Plan is created. Image bundles stay on the disk.`,
    ...(hasWorkers
      ? [
          'One worker goes back at a time, because nothing records how many the deleted Plan upgraded at once. For more, write the Plan with -o yaml, change its limits.concurrent, and apply it.',
        ]
      : []),
  ];
}
