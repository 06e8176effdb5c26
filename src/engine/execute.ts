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
}

/** Writes the campaign into the plan's status. Rejects with a conflict where the plan is not as it was read. */
export async function record<P extends KubeObject>(effects: Effects<P>, plan: P, campaign: Campaign): Promise<P> {
  const { dialect, client, ownWrites } = effects;
  const answer = await client.replace(dialect.plans, dialect.project(campaign, plan), { subresource: 'status' });
  ownWrites.remember(dialect.plans, answer);
  return answer;
}

/**
 * Writes one signal, on the object exactly as it was seen: where it has changed since, nothing is written, the change
 * arrives by the watch, and the decision is taken again.
 */
export async function send<P extends KubeObject>(
  { dialect, client, ownWrites }: Effects<P>,
  world: World,
  campaign: Campaign,
  signalling: Signalling,
): Promise<'written' | 'outdated'> {
  const { role } = signalling.stage;
  const object = world.get(role, signalling.target.name);
  if (!object) return 'outdated';
  const resource = dialect.objects[role];
  try {
    ownWrites.remember(resource, await client.replace(resource, dialect.signal.write(object, campaign, signalling)));
    return 'written';
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return 'outdated';
    throw error;
  }
}
