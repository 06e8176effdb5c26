/** Owns how every order is given: find the plan, decide on it as it is, write with a precondition, and say what follows. */

import type { KubeClient } from '../../kube/client.ts';
import { isConflict } from '../../kube/status-error.ts';
import { EXIT, RefitError } from '../../util/errors.ts';
import { printable } from '../../util/printable.ts';
import type { ConnectionFlags } from '../options.ts';
import { wrapped } from '../phrases.ts';
import { askLeader, type LeaderView } from '../status/leader.ts';
import { notesOf } from '../status/notes.ts';
import { inspect, viewAt } from '../status/observe.ts';
import { inSession, type Session, type SessionParts } from '../status/session.ts';
import { choosePlan } from './choose-plan.ts';
import type { Decide, InspectedPlan, Order } from './control.ts';

export interface ControlFlags extends ConnectionFlags {
  /** As `choosePlan` takes it. */
  readonly plan?: string;
}

/** Somebody else wrote in between, which leaders do often: each time the plan is looked at afresh. */
const MAX_TRIES = 10;

/** Resolves with 0 where the plan is as ordered, be it that it was so before. */
export async function applyControl(decide: Decide, flags: ControlFlags, parts: SessionParts): Promise<number> {
  const { clock, output, abort } = parts;
  return await inSession(flags, parts, 'refit-order', async (session) => {
    const now = clock.now();
    const { order, seen } = await carryOut(decide, session, flags.plan, now, abort);
    const leader = await askLeader(session.client, now, abort);
    const { columns } = output.size();
    const lines = [...order.said, ...notes(seen, leader)].flatMap((text) => wrapped(printable(text), columns));
    output.write(`${lines.join('\n')}\n`);
    return EXIT.ok;
  });
}

interface Given {
  readonly order: Order;
  readonly seen: InspectedPlan;
}

async function carryOut(
  decide: Decide,
  session: Session,
  named: string | undefined,
  now: number,
  abort: AbortSignal,
): Promise<Given> {
  const { client, loaded, looking } = session;
  const plans = loaded.flatMap((each) => each.plans().map((plan) => ({ each, plan })));
  const inspections = await Promise.all(
    plans.map(async ({ each, plan }) => await inspect(each.dialect, plan, each.world, looking, now)),
  );
  let inspection = choosePlan(inspections, named);
  const { dialect, world } = inspection;
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    const seen = { ...inspection, view: viewAt(inspection, now) };
    const order = decide(seen, now);
    if (!order.annotations || (await write(client, seen, order.annotations, abort))) return { order, seen };
    const { name, namespace } = seen.plan.metadata;
    const plan = await client.get(dialect.plans, name, { namespace, abort });
    inspection = await inspect(dialect, plan, world, looking, now);
  }
  throw new RefitError('REFIT_ORDER', 'the plan changes faster than an order can be written: try again');
}

/** False where the plan is not as it was seen. */
async function write(
  client: KubeClient,
  { dialect, plan }: InspectedPlan,
  annotations: NonNullable<Order['annotations']>,
  abort: AbortSignal,
): Promise<boolean> {
  const { name, namespace, resourceVersion } = plan.metadata;
  const patch = { metadata: { annotations, resourceVersion } };
  try {
    await client.patch(dialect.plans, name, patch, { type: 'merge', namespace, abort });
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}

/** An order that nobody carries out is one that waits. */
function notes({ view }: InspectedPlan, leader: LeaderView): string[] {
  return notesOf({ leader, plans: [view] }).map(({ text }) => `${text}.`);
}
