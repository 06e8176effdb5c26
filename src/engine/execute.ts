/** Owns the effects of a decision: writes with preconditions, each harmless when it is repeated. */
import type { Drains } from '../drain/drains.ts';
import type { KubeClient } from '../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../kube/status-error.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Dialect, Instruction, World } from './dialect.ts';
import { instructionsFor } from './errand-instructions.ts';
import type { Campaign, Errand, Signalling } from './model.ts';
import type { OwnWrites } from './own-writes.ts';

export interface Effects<P extends KubeObject> {
  readonly dialect: Dialect<P>;
  readonly client: KubeClient;
  readonly ownWrites: OwnWrites;
  /** Nothing is drained where absent. */
  readonly drains?: Drains | undefined;
  /** Ends every request when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * False where the plan, or an object that has to be finished first, is not as it was seen: nothing is recorded then.
 * `now` in milliseconds is the time of the record.
 */
export async function record<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  before: Campaign,
  after: Campaign,
  now: number,
): Promise<boolean> {
  const { dialect, client, ownWrites, signal } = effects;
  for (const instruction of finishing(dialect, world, plan, before, after)) {
    if (!(await carryOut(effects, instruction))) return false;
  }
  const options = { signal, ...(dialect.recordedIn === 'status' ? { subresource: 'status' } : {}) };
  try {
    ownWrites.remember(dialect.plans, await client.replace(dialect.plans, dialect.project(after, plan, now), options));
    return true;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}

function finishing<P extends KubeObject>(
  { signal }: Dialect<P>,
  world: World,
  plan: P,
  before: Campaign,
  after: Campaign,
): Instruction[] {
  const done = new Set(
    before.stages.flatMap(({ targets }) => targets.filter(({ state }) => state === 'done').map(({ key }) => key)),
  );
  return after.stages.flatMap((stage) =>
    stage.targets
      .filter(({ state, key }) => state === 'done' && !done.has(key))
      .flatMap((target) => signal.finish?.(world, after, stage, target, plan) ?? []),
  );
}

export interface Sent {
  readonly signalling: Signalling;
  readonly result: 'written' | 'outdated';
}

/**
 * Writes signals, each on its object exactly as it was seen: where that has changed since, nothing is written, the change
 * arrives by the watch, and the decision is taken again.
 *
 * An object at the version that was seen says nothing about the plan: a cache may show an old plan and a new object, such
 * as one that a later command has signalled. So the plan is asked for once more, past all caches, between the look at the
 * objects and the writes. Where it still is as decided on, nobody can have signalled an object that is still as seen.
 */
export async function send<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  campaign: Campaign,
  signals: readonly Signalling[],
): Promise<Sent[]> {
  if (signals.length === 0) return [];
  const prepared = signals.map((signalling) => ({
    signalling,
    instruction: effects.dialect.signal.send(world, campaign, signalling, plan),
  }));
  const isCurrent = await isUnchanged(effects, plan);
  return await Promise.all(
    prepared.map(async ({ signalling, instruction }): Promise<Sent> => {
      const isWritten = isCurrent && instruction !== undefined && (await carryOut(effects, instruction));
      return { signalling, result: isWritten ? 'written' : 'outdated' };
    }),
  );
}

/** True where anything was written, so that the next decision may be another one; `now` in ms is told to the targets. */
export async function runErrands<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  campaign: Campaign,
  errands: readonly Errand[],
  now: number,
): Promise<boolean> {
  const run = async (errand: Errand): Promise<boolean> => await runErrand(effects, world, campaign, errand, now);
  return (await Promise.all(errands.map(run))).includes(true);
}

async function runErrand<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  campaign: Campaign,
  errand: Errand,
  now: number,
): Promise<boolean> {
  const { drains, dialect } = effects;
  if (errand.kind === 'drain') {
    drains?.begin(errand.node, errand.options);
    return false;
  }
  const isEnd = errand.kind === 'go-on' || errand.kind === 'withdraw';
  if (isEnd && errand.node !== undefined) drains?.forget(errand.node);
  // One after the other: the second is right only once the first is done.
  for (const instruction of instructionsFor(dialect, world, campaign, errand, now)) {
    if (!(await carryOut(effects, instruction))) return false;
  }
  return true;
}

/** Asks past all caches whether the plan is still as it was decided on. */
export async function isUnchanged<P extends KubeObject>(
  { dialect, client, signal }: Effects<P>,
  plan: P,
): Promise<boolean> {
  const { name, namespace, resourceVersion } = plan.metadata;
  try {
    return (await client.get(dialect.plans, name, { namespace, signal })).metadata.resourceVersion === resourceVersion;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** False where the object is not as it was seen any more. */
async function carryOut<P extends KubeObject>(effects: Effects<P>, instruction: Instruction): Promise<boolean> {
  if (instruction.kind === 'begin') {
    await instruction.begin();
    return true;
  }
  const { client, ownWrites, signal } = effects;
  const { kind, resource, object } = instruction;
  try {
    const write =
      kind === 'create' ? client.create(resource, object, { signal }) : client.replace(resource, object, { signal });
    ownWrites.remember(resource, await write);
    return true;
  } catch (error) {
    if (kind === 'create' && isAlreadyExists(error)) return true;
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}
