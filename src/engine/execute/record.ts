/** Records the decision of a turn: writes the status shards first, then the plan. */
import type { KubeObject } from '../../kube/resources.ts';
import { ifFound, ifUnchanged, isOfObject } from '../../kube/status-error.ts';
import { settleAll } from '../../util/waits.ts';
import type { ShardedRecord } from '../contract/features.ts';
import type { Instruction, TouchedObject } from '../contract/signal.ts';
import {
  type Rollout,
  stateChanges,
  type Target,
  targetsIn,
  withStages,
} from '../model/rollout.ts';
import { restingOn } from '../model/status-shards.ts';
import { claimsFor } from './claim-writes.ts';
import {
  type Accompanying,
  areUnchanged,
  carryOut,
  type Effects,
  type RecordChange,
} from './writes.ts';

/**
 * Records the change. Resolves with false, without a record, if the plan or an object that must be written before it has
 * changed. `now` is in milliseconds.
 */
export async function record(
  effects: Effects,
  change: RecordChange,
  now: number,
): Promise<boolean> {
  const { dialect, world } = effects;
  const { plan, after, failures } = change;
  if (!(await areNotYetSignalled(effects, change))) return false;
  for (const found of [claimsFor, accompanying]) {
    const written = found(effects, change).map(
      async (each) => await carryOutFor(effects, after, each),
    );
    if ((await settleAll(written)).includes(false)) return false;
  }
  const projected = dialect.project(after, plan, now);
  const whole = { projected, rollout: after, failures };
  const spread = dialect.sharding?.spread(plan, whole, world, now) ?? {
    plan: projected,
    writes: [],
  };
  if (!(await writeShards(effects, change, spread))) return false;
  return await writePlan(effects, spread);
}

/**
 * Writes the changed status shards. They are written before the plan, so that the record of an ended target is never
 * lost. Writes nothing if the plan, or a shard that the change depends on, has changed at the API server.
 */
async function writeShards(
  effects: Effects,
  change: RecordChange,
  { writes, ofTargets = [] }: ShardedRecord<KubeObject>,
): Promise<boolean> {
  const { dialect, world } = effects;
  const { plan, before, after } = change;
  const holding = dialect.sharding?.holding(plan, restingOn(before, after), world) ?? [];
  const isWriting = writes.length + ofTargets.length > 0;
  const basis = isWriting ? [{ resource: dialect.plans, object: plan }, ...holding] : holding;
  if (!(await areUnchanged(effects, basis))) return false;
  const written = await settleAll([
    ...writes.map(async (instruction) => await carryOut(effects, instruction)),
    ...ofTargets.map(async (each) => await carryOutFor(effects, after, { ...each, mayLack: true })),
  ]);
  return written.every(Boolean);
}

/**
 * Writes the plan with its record. Resolves with false if the plan has changed since it was observed. The counts that
 * people read are in the metadata of the plan, and a write of the status does not change the metadata. So if the counts
 * must change, the first write changes the metadata, and the second write, with the resourceVersion of the first one,
 * writes the record.
 */
async function writePlan(
  effects: Effects,
  { plan, counted }: ShardedRecord<KubeObject>,
): Promise<boolean> {
  const { dialect, client, ownWrites, abort } = effects;
  const options = { abort, ...(dialect.statusRecord ? { subresource: 'status' } : {}) };
  const before = counted
    ? await ifUnchanged(client.replace(dialect.plans, counted, { abort }))
    : plan;
  const written =
    before &&
    (await ifUnchanged(
      client.replace(dialect.plans, { ...plan, metadata: before.metadata }, options),
    ));
  if (written) ownWrites.remember(dialect.plans, written);
  return written !== undefined;
}

/**
 * Returns the writes to the objects of targets that must come before the record. They are needed if the record says
 * that a target starts, has failed or is done.
 */
function accompanying(
  { dialect: { signal }, world }: Effects,
  { plan, before, after }: RecordChange,
): Accompanying[] {
  // A new rollout takes over targets that are still at work for an earlier rollout.
  const known = before.phase === 'new' ? withoutIntended(before) : before;
  return [...stateChanges(known, after), ...renewedIntents(known, after)].flatMap(
    ({ stage, target }) => {
      const mayLack = target.state === 'failed';
      const told = (instruction?: Instruction) =>
        instruction ? [{ stage, target, instruction, mayLack }] : [];
      if (target.state === 'done') return told(signal.finish?.(world, after, stage, target, plan));
      const matters = mayLack || target.state === 'intended';
      return matters ? told(signal.remember?.(world, after, stage, target, plan)) : [];
    },
  );
}

/**
 * Returns the targets that stay intended, but begin another attempt, or an attempt that no record names yet. The time of
 * such an attempt can be the same as the time by which it was known before.
 */
function renewedIntents(before: Rollout, after: Rollout) {
  const known = new Map(targetsIn(before, 'intended').map((target) => [target.key, target]));
  return withStages(after).filter(({ target }) => {
    const earlier = target.state === 'intended' ? known.get(target.key) : undefined;
    const isUnnamed = earlier?.lacksAttempt === true && target.lacksAttempt !== true;
    return earlier !== undefined && (isUnnamed || earlier.since !== target.since);
  });
}

function withoutIntended(rollout: Rollout): Rollout {
  const isOther = ({ state }: Target): boolean => state !== 'intended';
  return {
    ...rollout,
    stages: rollout.stages.map((stage) => ({ ...stage, targets: stage.targets.filter(isOther) })),
  };
}

/** Carries out one write that must come before the record. A refused write delays only its own target; the other targets are recorded. */
async function carryOutFor(
  effects: Effects,
  rollout: Rollout,
  accompanying: Accompanying,
): Promise<boolean> {
  const { instruction, mayLack, ...at } = accompanying;
  try {
    return await carryOut(effects, instruction);
  } catch (error) {
    if (!effects.refusals || !isOfObject(error)) throw error;
    effects.refusals.add(rollout, at, error.message);
    return mayLack;
  }
}

/**
 * Checks the targets that an abort returns to pending. Resolves with false if a target may already have its signal. The
 * cache of the leader may be too old to show that signal.
 */
export async function areNotYetSignalled(effects: Effects, change: RecordChange): Promise<boolean> {
  const { dialect, world } = effects;
  const { plan, before, after } = change;
  const released = stateChanges(before, after).flatMap(
    ({ stage, target: { state }, before: target }) =>
      target?.state === 'intended' && state === 'pending' ? { stage, target } : [],
  );
  const touched = released.flatMap(
    ({ stage, target }) => dialect.signal.touches(world, before, stage, target, plan) ?? [],
  );
  const answers = touched.map(async (each) => await isNotYetSignalled(effects, each));
  return (await Promise.all(answers)).every(Boolean);
}

async function isNotYetSignalled(
  { client, abort }: Effects,
  { resource, object, isAbsent = false }: TouchedObject,
): Promise<boolean> {
  if (!isAbsent) return await areUnchanged({ client, abort }, [{ resource, object }]);
  const { name, namespace } = object.metadata;
  return (await ifFound(client.get(resource, name, { namespace, abort }))) === undefined;
}
