/**
 * Sends the requests for those facts that a read-only command needs and cannot get from a watch. Answers are reused for
 * some seconds.
 */

import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { type LocksSeen, lookAtLocks } from '../../coordination/lock-look.ts';
import type { ToolName } from '../../coordination/tool.ts';
import { countInTime } from '../../drain/budget-pod-counter.ts';
import type { BudgetPods } from '../../drain/budget-pods.ts';
import { type DrainPreviewer, drainPreviewer } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import { placeOf } from '../../engine/contract/node-rollout-place.ts';
import type { Endpoint, World } from '../../engine/contract/world.ts';
import type { DecisionsOfPeople } from '../../engine/model/decisions-of-people.ts';
import type { Reason } from '../../engine/model/reasons.ts';
import type { Source, Stage, Target } from '../../engine/model/rollout.ts';
import type { EndpointHealth, Snapshot } from '../../engine/model/snapshot.ts';
import { resultsIn } from '../../engine/report/shown-checks.ts';
import { failuresIn } from '../../engine/report/shown-failures.ts';
import { hookResultsIn } from '../../engine/report/shown-hooks.ts';
import { type ShownSilencing, silencingIn } from '../../engine/report/shown-silencing.ts';
import { readDecisions } from '../../engine/snapshot/read-decisions.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type KubeObject, namespaces } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import type { Clock } from '../../util/clock.ts';

/**
 * The questions of a read-only command. Each function rejects if the API server denies the request or does not answer.
 */
export interface Sources {
  readonly controlPlane: AskControlPlane;
  readonly drainPreview: (
    node: string,
    options: DrainOptions,
  ) => ReturnType<DrainPreviewer['ahead']>;
  /** Counts the pods that PodDisruptionBudgets cover. */
  readonly budgetPods: () => Promise<BudgetPods>;
  /** Asks for the progress of the drain of a node. */
  readonly drain: (node: string, options: DrainOptions) => ReturnType<DrainPreviewer['during']>;
  /** Asks which preconditions of the plan are not met. */
  readonly preconditions: (dialect: Dialect, plan: KubeObject) => Promise<readonly Reason[]>;
  /** Asks what people decided about the plan in its NodeRollout. */
  readonly decisions: (dialect: Dialect, plan: KubeObject) => Promise<DecisionsOfPeople>;
  /** Asks whether the target delegates its drain to the leader. */
  readonly drainDelegation: (
    dialect: Dialect,
    stage: Stage,
    target: Target,
    world: World,
  ) => Promise<boolean>;
  /**
   * Resolves with the results of the health checks, as the leader published them last; undefined if it has published no
   * results about this source.
   */
  readonly health: (
    dialect: Dialect,
    plan: KubeObject,
    source: Source,
  ) => Promise<Snapshot['outside']['health']>;
  /**
   * Resolves with the states of the hooks, as the leader published them last; undefined if it has published no states.
   */
  readonly hooks: (
    dialect: Dialect,
    plan: KubeObject,
    source: Source,
  ) => Promise<Snapshot['outside']['hooks']>;
  /**
   * Resolves with the state of the silences of the plan, as the leader published it last; undefined if the leader has
   * published no such state.
   */
  readonly silencing: (
    dialect: Dialect,
    plan: KubeObject,
    source: Source,
  ) => Promise<ShownSilencing | undefined>;
  /** Resolves with what the leader published about the failures of the run; undefined if it has published nothing. */
  readonly failures: (
    dialect: Dialect,
    plan: KubeObject,
    run: string,
  ) => Promise<Snapshot['term']['failures']>;
  /** Resolves with the runs that the leader recorded, the newest first; undefined if there is no NodeRollout. */
  readonly runs: (
    dialect: Dialect,
    plan: KubeObject,
  ) => Promise<readonly NodeRolloutRun[] | undefined>;
  /** Asks whether the cluster has a namespace with this name. */
  readonly hasNamespace: (name: string) => Promise<boolean>;
  /** Looks at the locks that plans of the dialect share with these tools. */
  readonly locks: (dialect: Dialect, coordinate: readonly ToolName[]) => Promise<LocksSeen>;
}

export type AskControlPlane = (
  endpoints: readonly Endpoint[],
) => Promise<readonly EndpointHealth[]>;

/** Milliseconds for which an answer is reused. `refit status -w` asks every second. */
const KEPT_MS = 5000;
/** Milliseconds for which counted pods are reused. The lists have every pod of the cluster. */
const COUNT_KEPT_MS = 60_000;

export function sourcesOf(
  client: KubeClient,
  askControlPlane: AskControlPlane,
  clock: Clock,
  abort: AbortSignal,
): Sources {
  const kept = new Map<string, { readonly at: number; readonly answer: Promise<unknown> }>();
  const once = async <T>(key: string, ask: () => Promise<T>, keptMs = KEPT_MS): Promise<T> => {
    const known = kept.get(key);
    if (known && clock.monotonic() - known.at < keptMs) return await (known.answer as Promise<T>);
    const answer = ask();
    kept.set(key, { at: clock.monotonic(), answer });
    return await answer;
  };
  const look = async (): Promise<DrainPreviewer> =>
    await once('look', async () => await Promise.resolve(drainPreviewer(client, abort)));
  const nodeRolloutOf = async (dialect: Dialect, plan: KubeObject) =>
    await once(`NodeRollout ${dialect.name} ${plan.metadata.uid ?? ''}`, async () => {
      const place = placeOf(dialect, plan);
      if (place === undefined || plan.metadata.uid === undefined) return undefined;
      const { namespace, name } = place;
      return await ifFound(client.get(nodeRollouts, name, { namespace, abort }));
    });
  return {
    controlPlane: askControlPlane,
    drainPreview: async (node: string, options: DrainOptions) =>
      await once(`drain preview ${node}`, async () => await (await look()).ahead(node, options)),
    budgetPods: async () => {
      const ask = async () => await countInTime(client, clock, abort);
      return await once('budget pods', ask, COUNT_KEPT_MS);
    },
    drain: async (node: string, options: DrainOptions) =>
      await once(
        `drain ${node}`,
        async () => await (await look()).during(node, options, clock.now()),
      ),
    preconditions: async (dialect: Dialect, plan: KubeObject) =>
      await once(
        `preconditions ${dialect.name} ${plan.metadata.uid ?? ''}`,
        async () => (await dialect.preconditions?.unmet(client, plan, abort)) ?? [],
      ),
    decisions: async (dialect: Dialect, plan: KubeObject) =>
      await once(
        `decisions ${dialect.name} ${plan.metadata.uid ?? ''}`,
        async () => await readDecisions(client, dialect, plan, abort),
      ),
    drainDelegation: async (dialect: Dialect, stage: Stage, target: Target, world: World) =>
      await once(
        `drain delegation ${dialect.name} ${target.key}`,
        async () =>
          (await dialect.drainDelegation?.isDelegated?.(client, stage, target, world, abort)) ??
          false,
      ),
    locks: async (dialect: Dialect, coordinate: readonly ToolName[]) =>
      await once(
        `locks ${dialect.name} ${coordinate.join(' ')}`,
        async () => await lookAtLocks({ client, clock }, dialect.name, coordinate, abort),
      ),
    hasNamespace: async (name: string) =>
      await once(
        `namespace ${name}`,
        async () => (await ifFound(client.get(namespaces, name, { abort }))) !== undefined,
      ),
    health: async (dialect: Dialect, plan: KubeObject, { uid }: Source) =>
      resultsIn(await nodeRolloutOf(dialect, plan), uid),
    hooks: async (dialect: Dialect, plan: KubeObject, { uid }: Source) =>
      hookResultsIn(await nodeRolloutOf(dialect, plan), uid),
    failures: async (dialect: Dialect, plan: KubeObject, run: string) =>
      failuresIn(await nodeRolloutOf(dialect, plan), run),
    runs: async (dialect: Dialect, plan: KubeObject) =>
      (await nodeRolloutOf(dialect, plan))?.status?.history,
    silencing: async (dialect: Dialect, plan: KubeObject, { uid }: Source) =>
      silencingIn(await nodeRolloutOf(dialect, plan), uid),
  };
}
