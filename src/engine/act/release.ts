/** Owns the check before intents are given back: that nobody has told those targets to move, whatever caches show. */
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/status-error.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Dialect, Instruction, World } from '../dialect.ts';
import type { Signalling } from '../model/decided.ts';
import type { Rollout } from '../model/recorded.ts';
import { areUnchanged } from './status-shards.ts';

/**
 * An abort gives back what seems not begun. A cache that lags shows so what another leader has signalled since: the plan
 * would end, and its node would go on. False where what a signal would be written on is not as it was seen.
 */
export async function areNotYetSignalled<P extends KubeObject>(
  { dialect, client, abort }: { dialect: Dialect<P>; client: KubeClient; abort?: AbortSignal | undefined },
  world: World,
  plan: P,
  before: Rollout,
  after: Rollout,
): Promise<boolean> {
  const signals = released(before, after).flatMap((target) => dialect.signal.send(world, before, target, plan) ?? []);
  const answers = await Promise.all(signals.map(async (each) => await isNotYetSignalled(client, each, abort)));
  return answers.every(Boolean);
}

function released(before: Rollout, after: Rollout): Signalling[] {
  const states = new Map(after.stages.flatMap(({ targets }) => targets.map(({ key, state }) => [key, state] as const)));
  return before.stages.flatMap((stage) =>
    stage.targets
      .filter(({ key, state }) => state === 'intended' && states.get(key) === 'pending')
      .map((target) => ({ stage, target, agent: {} })),
  );
}

async function isNotYetSignalled(
  client: KubeClient,
  told: Instruction,
  abort: AbortSignal | undefined,
): Promise<boolean> {
  if (told.kind === 'begin') return true;
  const { kind, resource, object } = told;
  if (kind === 'replace') return await areUnchanged(client, [{ resource, object }], abort);
  const { name, namespace } = object.metadata;
  try {
    await client.get(resource, name, { namespace, abort });
    return false;
  } catch (error) {
    if (isNotFound(error)) return true;
    throw error;
  }
}
