/** Owns the effects of a decision: writes with preconditions, each harmless when it is repeated. */
import type { Drains } from '../drain/drains.ts';
import type { KubeClient } from '../kube/client.ts';
import { nodes } from '../kube/resources.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../kube/status-error.ts';
import type { KubeObject, Node } from '../kube/types.ts';
import { settleAll } from '../util/settle.ts';
import { ownerOf } from './cordons.ts';
import type { Dialect, Instruction, Split, World } from './dialect.ts';
import { instructionsFor } from './errand-instructions.ts';
import { factsOf } from './gate-input.ts';
import { areUntold } from './given-back.ts';
import { areUnchanged, restingOn } from './ledgers.ts';
import type { Campaign, Errand, Signalling, Snapshot, Target } from './model.ts';
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
  const { dialect } = effects;
  if (!(await areUntold(effects, world, plan, before, after))) return false;
  for (const instruction of finishing(dialect, world, plan, before, after)) {
    if (!(await carryOut(effects, instruction))) return false;
  }
  const projected = dialect.project(after, plan, now);
  const split = dialect.ledgers?.split(plan, projected, world, now) ?? { plan: projected, writes: [] };
  if (!(await writeLedgers(effects, world, plan, split, restingOn(before, after)))) return false;
  return await writePlan(effects, split);
}

/**
 * Ledgers first: what ends is never in neither. Their versions say nothing about the plan, nor does its version about them:
 * so the plan is asked for past all caches before a ledger is written, and ledgers that the record rests on before it.
 */
async function writeLedgers<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  { writes }: Split<P>,
  targets: readonly Target[],
): Promise<boolean> {
  const { dialect, client, signal } = effects;
  const holding = dialect.ledgers?.holding(plan, targets, world) ?? [];
  const basis = writes.length > 0 ? [{ resource: dialect.plans, object: plan }, ...holding] : holding;
  if (!(await areUnchanged(client, basis, signal))) return false;
  const written = await settleAll(writes.map(async (instruction) => await carryOut(effects, instruction)));
  return written.every(Boolean);
}

async function writePlan<P extends KubeObject>(
  { dialect, client, ownWrites, signal }: Effects<P>,
  { plan, counted }: Split<P>,
): Promise<boolean> {
  const options = { signal, ...(dialect.recordedIn === 'status' ? { subresource: 'status' } : {}) };
  try {
    const { metadata } = counted ? await client.replace(dialect.plans, counted, { signal }) : plan;
    ownWrites.remember(dialect.plans, await client.replace(dialect.plans, { ...plan, metadata }, options));
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

/** Signals that are under way at once: enough to keep a server busy, and soon enough over for the look at the plan to hold. */
const SIGNALS_AT_ONCE = 100;

/**
 * Writes signals, each on its object exactly as it was seen: where that has changed since, nothing is written, the change
 * arrives by the watch, and the decision is taken again.
 *
 * An object at the version that was seen says nothing about the plan: a cache may show an old plan and a new object, such
 * as one that a later command has signalled. So the plan, with the ledgers of the targets, is asked for once more, past
 * all caches, between the look at the objects and the writes. Where it still is as decided on, nobody can have signalled
 * an object that is still as seen.
 */
export async function send<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  campaign: Campaign,
  signals: readonly Signalling[],
): Promise<Sent[]> {
  const sent: Sent[] = [];
  for (let first = 0; first < signals.length; first += SIGNALS_AT_ONCE) {
    const batch = signals.slice(first, first + SIGNALS_AT_ONCE);
    sent.push(...(await sendTogether(effects, world, plan, campaign, batch)));
  }
  return sent;
}

async function sendTogether<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  plan: P,
  campaign: Campaign,
  signals: readonly Signalling[],
): Promise<Sent[]> {
  const { dialect } = effects;
  const prepared = signals.map((signalling) => ({
    signalling,
    instruction: dialect.signal.send(world, campaign, signalling, plan),
  }));
  const targets = signals.map(({ target }) => target);
  const isAsSeen = await isCurrent(effects, world, plan, targets);
  return await settleAll(
    prepared.map(async ({ signalling, instruction }): Promise<Sent> => {
      const isWritten = isAsSeen && instruction !== undefined && (await carryOut(effects, instruction));
      return { signalling, result: isWritten ? 'written' : 'outdated' };
    }),
  );
}

/**
 * Pods are evicted only for as long as the target asks for that: it may fail, or move on by itself, and a node that is let
 * back must keep what comes to it.
 */
export function endIdleDrains({ drains }: Pick<Effects<never>, 'drains'>, snapshot: Snapshot): void {
  for (const target of snapshot.campaign.stages.flatMap(({ targets }) => targets)) {
    const { drain, node, observation } = factsOf(snapshot, target);
    const isAsking = observation.kind === 'working' && observation.asks === 'drain';
    if (drain && node && !(isAsking && target.state === 'intended')) drains?.forget(node.name);
  }
}

/** Errands that are under way at once: each is a write or two, and a large plan that is aborted has thousands. */
const ERRANDS_AT_ONCE = 100;

/** Errands that rest on one look at the plan. */
export interface ErrandSlice {
  readonly errands: readonly Errand[];
  /** True where anything was done that the next decision may hang on; `onDone` hears of each errand that was. */
  run(onDone: (errand: Errand) => void): Promise<boolean>;
}

/**
 * To be run in this order, each only where the plan is still as it was decided on; `now` in ms is told to the targets. All
 * are prepared here: each meets its object as it is now, however late its turn comes.
 */
export function prepareErrands<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  campaign: Campaign,
  errands: readonly Errand[],
  now: number,
): ErrandSlice[] {
  const prepared = errands.map((errand) => ({ errand, run: prepareErrand(effects, world, campaign, errand, now) }));
  return Array.from({ length: Math.ceil(errands.length / ERRANDS_AT_ONCE) }, (_, index) => {
    const [first, end] = [index * ERRANDS_AT_ONCE, (index + 1) * ERRANDS_AT_ONCE];
    const slice = prepared.slice(first, end);
    const run: ErrandSlice['run'] = async (onDone) => {
      const running = slice.map(async (each) => {
        const isDone = await each.run();
        if (isDone) onDone(each.errand);
        return isDone;
      });
      return (await settleAll(running)).includes(true);
    };
    return { errands: slice.map(({ errand }) => errand), run };
  });
}

function prepareErrand<P extends KubeObject>(
  effects: Effects<P>,
  world: World,
  campaign: Campaign,
  errand: Errand,
  now: number,
): () => Promise<boolean> {
  if (errand.kind === 'drain') {
    const object = world.get(nodes, errand.node);
    return async () => object !== undefined && (await beginDrain(effects, campaign, errand, object));
  }
  const isEnd = errand.kind === 'go-on' || errand.kind === 'withdraw' || (errand.kind === 'tidy' && errand.cordon);
  const instructions = instructionsFor(effects.dialect, world, campaign, errand, now);
  return async () => {
    if (isEnd && errand.node !== undefined) effects.drains?.forget(errand.node);
    // One after the other: the second is right only once the first is done.
    for (const instruction of instructions) {
      if (!(await carryOut(effects, instruction))) return false;
    }
    return instructions.length > 0;
  };
}

/** A cache may show the cordon of a node that has been let back since: pods are evicted from none that is open. */
async function beginDrain<P extends KubeObject>(
  { client, drains, signal }: Effects<P>,
  campaign: Campaign,
  { node, target, options }: Extract<Errand, { kind: 'drain' }>,
  object: Node,
): Promise<boolean> {
  if (!drains || !(await areUnchanged(client, [{ resource: nodes, object }], signal))) return false;
  const owner = ownerOf(campaign, target);
  drains.begin(node, owner, options);
  return drains.stateOf(node, owner) !== undefined;
}

/** Asks past all caches whether the plan, and the ledgers of those targets, are still as they were decided on. */
export async function isCurrent<P extends KubeObject>(
  { dialect, client, signal }: Effects<P>,
  world: World,
  plan: P,
  targets: readonly Target[],
): Promise<boolean> {
  const holding = dialect.ledgers?.holding(plan, targets, world) ?? [];
  return await areUnchanged(client, [{ resource: dialect.plans, object: plan }, ...holding], signal);
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
