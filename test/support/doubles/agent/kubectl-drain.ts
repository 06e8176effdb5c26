/** Drains as the library of kubectl does with the options of k0s Autopilot: without a pause after a refused eviction. */
import type { KubeClient } from '../../../../src/kube/client.ts';
import { type Pod, pods, type Resource } from '../../../../src/kube/resources.ts';
import { isNotFound, StatusError } from '../../../../src/kube/status-error.ts';
import { type Clock, createTokenBucket, sleep } from '../../../../src/util/clock.ts';
import type { Times } from '../times.ts';

/** The rate limit of the client library. The admin client of k0s may make 40 calls a second, and up to 400 at once. */
export class DrainLimits {
  readonly #takeToken: () => number;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#takeToken = createTokenBucket(clock, { perSecond: 40, burst: 400 });
  }

  async pass(abort: AbortSignal): Promise<void> {
    const waitMs = this.#takeToken();
    if (waitMs > 0) await sleep(this.#clock, waitMs, abort);
  }
}

export interface DrainParts {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly times: Pick<Times, 'drain' | 'podGone'>;
  readonly limits: DrainLimits;
  readonly abort: AbortSignal;
}

const daemonSets: Resource = {
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  namespaced: true,
};
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Drains the node. Rejects if the drain takes longer than its limit. */
export async function drain(node: string, parts: DrainParts): Promise<void> {
  const { client, clock, times } = parts;
  const { items } = await client.list(pods, { fieldSelector: `spec.nodeName=${node}` });
  const leaving: Pod[] = [];
  for (const pod of items) if (await mustGo(client, pod)) leaving.push(pod);
  const limit = new AbortController();
  const cancel = clock.schedule(times.drain, () =>
    limit.abort(new Error(`${node} was not drained in time`)),
  );
  const abort = AbortSignal.any([parts.abort, limit.signal]);
  try {
    await Promise.all(leaving.map(async (pod) => await remove(pod, { ...parts, abort })));
  } finally {
    cancel();
    limit.abort(new Error(`the drain of ${node} is over`));
  }
}

async function mustGo(client: KubeClient, { metadata, status }: Pod): Promise<boolean> {
  if (metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) return false;
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return true;
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (owner?.kind !== 'DaemonSet') return true;
  return await client.get(daemonSets, owner.name, { namespace: metadata.namespace }).then(
    () => false,
    (error: unknown) => {
      if (isNotFound(error)) return true;
      throw error;
    },
  );
}

async function remove({ metadata }: Pod, parts: DrainParts): Promise<void> {
  const { client, clock, times, limits, abort } = parts;
  const { name, namespace = 'default', uid } = metadata;
  const find = async (): Promise<Pod | undefined> => {
    await limits.pass(abort);
    return await client.get(pods, name, { namespace, abort }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  };
  for (let isRefused = true; isRefused; ) {
    await limits.pass(abort);
    isRefused = await client.evict({ name, namespace }, { abort }).then(() => false, wasRefused);
    if (isRefused) await find();
  }
  while ((await find())?.metadata.uid === uid) await sleep(clock, times.podGone, abort);
}

/** Returns false if the pod does not exist any more. */
function wasRefused(error: unknown): boolean {
  if (isNotFound(error)) return false;
  if (error instanceof StatusError && error.code === 429) return true;
  throw error;
}
