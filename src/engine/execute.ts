/** Owns the effects of a decision: API writes with preconditions, each harmless when it is repeated. */
import type { KubeClient } from '../kube/client.ts';
import { isConflict, isNotFound } from '../kube/status-error.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Dialect, World } from './dialect.ts';
import type { Campaign, Signalling } from './model.ts';
import type { OwnWrites } from './own-writes.ts';

export interface Effects<P extends KubeObject> {
  readonly dialect: Dialect<P>;
  readonly client: KubeClient;
  readonly ownWrites: OwnWrites;
  /** Ends every request when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/** Writes the campaign into the plan's status. Rejects with a conflict where the plan is not as it was read. */
export async function record<P extends KubeObject>(effects: Effects<P>, plan: P, campaign: Campaign): Promise<P> {
  const { dialect, client, ownWrites, signal } = effects;
  const options = { subresource: 'status', signal };
  const answer = await client.replace(dialect.plans, dialect.project(campaign, plan), options);
  ownWrites.remember(dialect.plans, answer);
  return answer;
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
  const seen = signals.map((signalling) => ({
    signalling,
    object: world.get(signalling.stage.role, signalling.target.name),
  }));
  const isCurrent = await isUnchanged(effects, plan);
  return await Promise.all(
    seen.map(async ({ signalling, object }): Promise<Sent> => {
      const isWritten = isCurrent && object !== undefined && (await write(effects, object, campaign, signalling));
      return { signalling, result: isWritten ? 'written' : 'outdated' };
    }),
  );
}

async function isUnchanged<P extends KubeObject>({ dialect, client, signal }: Effects<P>, plan: P): Promise<boolean> {
  try {
    const { metadata } = await client.get(dialect.plans, plan.metadata.name, { signal });
    return metadata.resourceVersion === plan.metadata.resourceVersion;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

async function write<P extends KubeObject>(
  { dialect, client, ownWrites, signal }: Effects<P>,
  object: KubeObject,
  campaign: Campaign,
  signalling: Signalling,
): Promise<boolean> {
  const resource = dialect.objects[signalling.stage.role];
  try {
    const written = dialect.signal.write(object, campaign, signalling);
    ownWrites.remember(resource, await client.replace(resource, written, { signal }));
    return true;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}
