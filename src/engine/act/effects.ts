/** The writes that every effect is made of. Each has a precondition and can be repeated without harm. */
import type { Drains } from '../../drain/drains.ts';
import type { KubeClient } from '../../kube/client.ts';
import { ifFound, isAlreadyExists, isConflict, isNotFound } from '../../kube/status-error.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Dialect, Instruction, World, WorldObject } from '../dialect.ts';
import type { Target } from '../model/recorded.ts';
import type { OwnWrites } from '../observe/own-writes.ts';

export interface Effects<P extends KubeObject> {
  readonly dialect: Dialect<P>;
  readonly client: KubeClient;
  readonly ownWrites: OwnWrites;
  /** Without it nothing is drained. */
  readonly drains?: Drains | undefined;
  /** Ends every request when it aborts. */
  readonly abort?: AbortSignal | undefined;
}

/** False if the object has changed since it was observed; nothing is written then. */
export async function carryOut<P extends KubeObject>(effects: Effects<P>, instruction: Instruction): Promise<boolean> {
  if (instruction.kind === 'begin') {
    await instruction.begin();
    return true;
  }
  const { client, ownWrites, abort } = effects;
  const { kind, resource, object } = instruction;
  try {
    const write =
      kind === 'create' ? client.create(resource, object, { abort }) : client.replace(resource, object, { abort });
    ownWrites.remember(resource, await write);
    return true;
  } catch (error) {
    if (kind === 'create' && isAlreadyExists(error)) return true;
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}

/** Asks the API server, not a cache, whether the plan and the status shards of these targets are as observed. */
export async function isCurrent<P extends KubeObject>(
  { dialect, client, abort }: Effects<P>,
  world: World,
  plan: P,
  targets: readonly Target[],
): Promise<boolean> {
  const holding = dialect.shards?.holding(plan, targets, world) ?? [];
  return await areUnchanged(client, [{ resource: dialect.plans, object: plan }, ...holding], abort);
}

/** Asks the API server for all of them at once. False if one is gone or has another version than the observed one. */
export async function areUnchanged(
  client: KubeClient,
  observed: readonly WorldObject[],
  abort: AbortSignal | undefined,
): Promise<boolean> {
  const answers = observed.map(async ({ resource, object: { metadata } }) => {
    const { name, namespace, resourceVersion } = metadata;
    const found = await ifFound(client.get(resource, name, { namespace, abort }));
    return found !== undefined && found.metadata.resourceVersion === resourceVersion;
  });
  return (await Promise.all(answers)).every(Boolean);
}
