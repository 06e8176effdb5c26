/** The three controllers for the states of a plan: their triggers, and what they do with the outcome of a pass. */
import { type CommandStatus, type Plan, plans } from '../../../../src/api/autopilot/plan.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import type { Controller } from '../runtime/manager.ts';
import { viewOf } from './command-view.ts';
import { newPlan } from './new-plan.ts';
import type { LeaderParts, Outcome, Pass } from './parts.ts';
import { schedulable } from './schedulable.ts';
import { schedulableWait } from './schedulable-wait.ts';

export function planControllers(parts: LeaderParts): Controller[] {
  const common = { resource: plans };
  const admits = (state: string) => (plan: Plan) =>
    plan.metadata.name === 'autopilot' && (plan.status?.state ?? '') === state;
  const anyChange = { create: true, update: 'any' } as const;
  const states = [
    { name: 'newplan', state: '', triggers: { create: true }, handle: start },
    {
      name: 'schedulablewait',
      state: 'SchedulableWait',
      triggers: anyChange,
      handle: step(schedulableWait),
    },
    { name: 'schedulable', state: 'Schedulable', triggers: anyChange, handle: step(schedulable) },
  ];
  return states.map(({ name, state, triggers, handle }) => ({
    ...common,
    name,
    triggers,
    admits: admits(state) as Controller['admits'],
    reconcile: async (plan) => await reconcile(parts, plan, handle),
  }));
}

type Handler = (parts: LeaderParts, plan: Plan) => Promise<'write' | 'again'>;

/**
 * Handles a plan without a second check of its state. So a repeated item is handled even if the state of the plan has
 * changed meanwhile.
 */
async function reconcile(
  parts: LeaderParts,
  name: string,
  handle: Handler,
): Promise<number | undefined> {
  const cached = parts.cache.get(plans, name);
  if (cached === undefined) return undefined;
  const plan = structuredClone(cached);
  let outcome: 'write' | 'again';
  try {
    outcome = await handle(parts, plan);
  } catch (error) {
    // The error is only logged. Nothing repeats the item.
    parts.log.error('the plan cannot be handled', { problem: messageOf(error) });
    return undefined;
  }
  if (outcome === 'again') return parts.times.planRetry;
  await parts.client.replace(plans, plan, { subresource: 'status' });
  return undefined;
}

/** Appends to the existing entries. So a plan that is started twice keeps too many entries. */
const start: Handler = async (parts, plan) => {
  // This is how the Go struct is serialized: if there are no commands, the value is `null`, which the API server
  // refuses.
  const commands = plan.status?.commands ?? (null as unknown as CommandStatus[]);
  const status: NonNullable<Plan['status']> = { state: '', commands };
  plan.status = status;
  for (const [id, command] of plan.spec.commands.entries()) {
    const entry: CommandStatus = { id, state: '' };
    const view = viewOf(command, entry);
    if (view === undefined) throw new Error(`command ${id} is of no known kind`);
    status.commands = [...(status.commands ?? []), entry];
    const outcome = await newPlan(parts, view, plan);
    if (outcome !== 'SchedulableWait') {
      status.state = outcome;
      return 'write';
    }
  }
  status.state = 'SchedulableWait';
  return 'write';
};

function step(pass: Pass): Handler {
  return async (parts, plan) => {
    const { status } = plan;
    if (status === undefined || status.commands.length !== plan.spec.commands.length)
      throw new Error('broken symmetry');
    for (const [id, command] of plan.spec.commands.entries()) {
      const entry = status.commands[id];
      const view = entry && viewOf(command, entry);
      if (entry === undefined || view === undefined)
        throw new Error(`command ${id} is of no known kind`);
      if (entry.state === 'Completed') continue;
      const outcome: Outcome = await pass(parts, view, plan);
      if (outcome === 'again') return 'again';
      entry.state = outcome;
      if (outcome !== 'Completed') status.state = outcome;
      return 'write';
    }
    status.state = 'Completed';
    return 'write';
  };
}
