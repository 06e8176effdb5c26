/** Asks what no watch shows, with the rights of the user; answers are reused for some seconds. */
import type { DrainProgress } from '../../drain/drain.ts';
import { type DrainPreview, DrainPreviewer } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { Dialect, Endpoint, World } from '../../engine/dialect.ts';
import type { EndpointHealth } from '../../engine/model/observed.ts';
import type { Reason } from '../../engine/model/reasons.ts';
import type { Stage, Target } from '../../engine/model/recorded.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Clock } from '../../util/clock.ts';

/** Each rejects if the API server denies it or does not answer. */
export interface Sources {
  controlPlane(endpoints: readonly Endpoint[]): Promise<readonly EndpointHealth[]>;
  drainPreview(node: string, options: DrainOptions): Promise<DrainPreview>;
  drain(node: string, options: DrainOptions): Promise<DrainProgress>;
  preconditions(dialect: Dialect, plan: KubeObject): Promise<readonly Reason[]>;
  /** Whether the leader cordons, drains and uncordons for the target. */
  drainDelegation(dialect: Dialect, stage: Stage, target: Target, world: World): Promise<boolean>;
}

export type AskControlPlane = Sources['controlPlane'];

/** Milliseconds for which an answer is reused: a watch asks every second. */
const KEPT_MS = 5000;

export function sourcesOf(
  client: KubeClient,
  askControlPlane: AskControlPlane,
  clock: Clock,
  abort: AbortSignal,
): Sources {
  const kept = new Map<string, { readonly at: number; readonly answer: Promise<unknown> }>();
  const once = async <T>(key: string, ask: () => Promise<T>): Promise<T> => {
    const known = kept.get(key);
    if (known && clock.monotonic() - known.at < KEPT_MS) return await (known.answer as Promise<T>);
    const answer = ask();
    kept.set(key, { at: clock.monotonic(), answer });
    return await answer;
  };
  const look = async (): Promise<DrainPreviewer> =>
    await once('look', async () => await Promise.resolve(new DrainPreviewer(client, abort)));
  return {
    controlPlane: askControlPlane,
    drainPreview: async (node, options) =>
      await once(`drain preview ${node}`, async () => await (await look()).ahead(node, options)),
    drain: async (node, options) =>
      await once(`drain ${node}`, async () => await (await look()).during(node, options, clock.now())),
    preconditions: async (dialect, plan) =>
      await once(
        `preconditions ${dialect.name} ${plan.metadata.uid ?? ''}`,
        async () => (await dialect.preconditions?.unmet(client, plan, abort)) ?? [],
      ),
    drainDelegation: async (dialect, stage, target, world) =>
      await once(
        `drain delegation ${dialect.name} ${target.key}`,
        async () => (await dialect.drainDelegation?.isDelegated?.(client, stage, target, world, abort)) ?? false,
      ),
  };
}
