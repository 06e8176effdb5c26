/**
 * Carries out the writes of the engine, including signals. Each write has a precondition and can be repeated without
 * harm.
 */
import type { Drains } from '../../drain/running-drains.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject, Node } from '../../kube/resources.ts';
import * as status from '../../kube/status-error.ts';
import { settleAll } from '../../util/waits.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Instruction } from '../contract/signal.ts';
import type { World, WorldObject } from '../contract/world.ts';
import type { Signalling } from '../model/decision.ts';
import type { FailureReasons } from '../model/failures.ts';
import type { Rollout, Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { RefusedWrites } from '../snapshot/refused-writes.ts';
import type { OwnWrites } from '../snapshot/world.ts';

export interface Effects {
  readonly dialect: Dialect;
  readonly client: KubeClient;
  readonly world: World;
  readonly ownWrites: OwnWrites;
  readonly drains?: Drains | undefined;
  /** Collects the writes that the API server refuses. If this member is undefined, the promise of a refused write rejects. */
  readonly refusals?: Pick<RefusedWrites, 'add' | 'of'>;
  /** Ends every request once it is aborted. */
  readonly abort?: AbortSignal | undefined;
}

export interface RecordChange {
  readonly plan: KubeObject;
  readonly policy: RolloutPolicy;
  readonly before: Rollout;
  readonly after: Rollout;
  /** The reasons of the targets that this change lets fail. */
  readonly failures: FailureReasons;
}

/**
 * A write to the object of a target that must come before the record. If `mayLack` is true, the record is written even
 * if this write is refused, because the record contains the same fact.
 */
export type Accompanying = Pick<Signalling, 'stage' | 'target'> & {
  readonly instruction: Instruction;
  readonly mayLack: boolean;
};

/** Carries out the instruction. Resolves with false, without a write, if the object has changed since it was observed. */
export async function carryOut(effects: Effects, instruction: Instruction): Promise<boolean> {
  if (instruction.kind === 'begin') {
    await instruction.begin();
    return true;
  }
  const { client, ownWrites, abort } = effects;
  const { kind, resource, object } = instruction;
  try {
    if (kind === 'delete') {
      const { name, namespace, uid, resourceVersion } = object.metadata;
      await client.delete(resource, name, {
        namespace,
        uid,
        resourceVersion,
        propagationPolicy: 'Background',
        abort,
      });
      return true;
    }
    const write =
      kind === 'create'
        ? client.create(resource, object, { abort })
        : client.replace(resource, object, { abort });
    const written = await write;
    ownWrites.remember(resource, written);
    if (kind === 'replace') refuseLoss(written, object);
    return true;
  } catch (error) {
    if (kind === 'create' && status.isAlreadyExists(error)) return true;
    if (status.isConflict(error) || status.isNotFound(error)) return false;
    throw error;
  }
}

function refuseLoss(written: KubeObject, wanted: KubeObject): void {
  const kept = marksOn(written);
  const lost = marksOn(wanted).find((mark) => !kept.includes(mark));
  const message = `${lost} is not there after the write; a webhook or admission policy removes it`;
  if (lost !== undefined) throw new status.StatusError({ kind: 'Status', code: 422, message });
}

const marksOn = ({
  metadata: { annotations = {} },
  spec: { taints = [], unschedulable } = {},
}: Node): string[] => [
  ...Object.keys(annotations).map((key) => `the annotation ${key}`),
  ...taints.map(({ key }) => `the taint ${key}`),
  ...(unschedulable === true ? ['spec.unschedulable'] : []),
];

/** Asks the API server, not a cache, whether the plan and the status shards of these targets still are as they were observed. */
export async function isCurrent(
  effects: Effects,
  plan: KubeObject,
  targets: readonly Target[],
): Promise<boolean> {
  const { dialect, world, ownWrites } = effects;
  const holding = dialect.sharding?.holding(plan, targets, world) ?? [];
  if (holding.length === 0 && ownWrites.isFresh(plan)) return true;
  return await areUnchanged(effects, [{ resource: dialect.plans, object: plan }, ...holding]);
}

type Requests = Pick<Effects, 'client' | 'abort'>;

/**
 * Reads all these objects from the API server at the same time. Resolves with false if any object was deleted, or has
 * changed since it was observed.
 */
export async function areUnchanged(
  { client, abort }: Requests,
  observed: readonly WorldObject[],
): Promise<boolean> {
  const answers = observed.map(async ({ resource, object: { metadata } }) => {
    const { name, namespace, resourceVersion } = metadata;
    const found = await status.ifFound(client.get(resource, name, { namespace, abort }));
    return found !== undefined && found.metadata.resourceVersion === resourceVersion;
  });
  return (await Promise.all(answers)).every(Boolean);
}

export interface Sent {
  readonly signalling: Signalling;
  /**
   * `invalid` means that the API server rejected the object itself, so that a repeated write would not help. `refused` means that
   * rules or rights forbid the write now.
   */
  readonly result: 'written' | 'outdated' | 'refused' | 'invalid';
  readonly refusal?: string;
}

/**
 * The maximum number of signals that are sent at once. The number is large enough to keep the API server busy, and
 * small enough that the requests end soon after the check that the plan is unchanged.
 */
const SIGNALS_AT_ONCE = 100;

/**
 * Sends the signals. If an object has changed, its signal is not written. The watch will show the change, and the
 * leader then decides again.
 */
export async function send(
  effects: Effects,
  plan: KubeObject,
  rollout: Rollout,
  signals: readonly Signalling[],
) {
  const sent: Sent[] = [];
  // All signals are prepared before the first request, with the resourceVersions that the decision has read. So if an object changes
  // while earlier signals are sent, the write of its signal ends in a conflict.
  const all = signals.map((signalling) => ({
    signalling,
    instruction: effects.dialect.signal.send(effects.world, rollout, signalling, plan),
  }));
  for (let first = 0; first < all.length; first += SIGNALS_AT_ONCE) {
    const prepared = all.slice(first, first + SIGNALS_AT_ONCE);
    const targets = prepared.map(({ signalling }) => signalling.target);
    // A cache may contain an old plan together with a new object that was already signalled for a later command. If the
    // plan and the shards are unchanged at the API server, then an unchanged object has got no signal meanwhile.
    const isPlanCurrent = await isCurrent(effects, plan, targets);
    const results = prepared.map(async ({ signalling, instruction }): Promise<Sent> => {
      try {
        const isWritten =
          isPlanCurrent && instruction !== undefined && (await carryOut(effects, instruction));
        return { signalling, result: isWritten ? 'written' : 'outdated' };
      } catch (error) {
        if (!status.isOfObject(error)) throw error;
        const isCertain =
          instruction?.kind === 'create' && status.isVerdict(error) && !status.isForbidden(error);
        return { signalling, result: isCertain ? 'invalid' : 'refused', refusal: error.message };
      }
    });
    sent.push(...(await settleAll(results)));
  }
  return sent;
}
