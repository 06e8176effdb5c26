/** One controller of Rancher's Plans with an in-memory API server. The server refuses the requests that a test names. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../../src/api/kinds.ts';
import { cattle } from '../../../src/dialects/cattle/plan/cattle-dialect.ts';
import {
  DEFAULT_JOB_SETTINGS,
  type JobSettings,
} from '../../../src/dialects/cattle/plan/config.ts';
import { NODE_LABEL } from '../../../src/dialects/cattle/plan/names.ts';
import type { Drains } from '../../../src/drain/running-drains.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import type { HookRunner } from '../../../src/hooks/runner.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { type Job, jobs, type KubeObject, nodes } from '../../../src/kube/resources.ts';
import { claimOn } from '../../../src/signal/at-work.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { defined } from '../../../src/util/json.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { later, T0 } from '../clock/times.ts';
import { buildCattlePlan, type CattleSpec } from './cattle-plans.ts';
import { MemoryApi, refusal } from './memory-api.ts';
import { buildNode } from './nodes.ts';
import { buildReconciler } from './reconcilers.ts';
import { buildPolicy } from './rollout-policies.ts';

interface SceneOptions {
  readonly policyOf?: (plan: KubeObject) => Partial<RolloutPolicy>;
  readonly refuse?: (object: KubeObject, subresource?: string) => boolean;
  readonly job?: Partial<JobSettings>;
  readonly checksVersions?: boolean;
  /** Further images that install K3s or RKE2. */
  readonly installers?: readonly string[];
  /** Carries out the hooks of the policies; without it, the scene has no hooks. */
  readonly hooks?: (clock: Clock) => HookRunner;
  readonly drains?: Drains;
}

export const LIMITED = { maxUnavailable: { nodes: 1 } };

/** A Plan for the node of that name. */
export function selecting(name: string, node: string, more: Partial<CattleSpec> = {}): CattlePlan {
  return buildCattlePlan(name, {
    nodeSelector: { matchLabels: { 'kubernetes.io/hostname': node } },
    ...more,
  });
}

/** Returns the dialect of a new process, which remembers nothing. */
function dialectWith({ job, checksVersions, installers }: SceneOptions) {
  return cattle({
    name: 'controller',
    namespace: 'system-upgrade',
    job: { ...DEFAULT_JOB_SETTINGS, ...job },
    ...defined({ checksVersions, installers }),
  });
}

function serverWith(plans: readonly CattlePlan[], names: readonly string[]): MemoryApi {
  const api = new MemoryApi();
  for (const name of names)
    api.put(nodes, buildNode(name, { labels: { 'kubernetes.io/hostname': name } }));
  for (const plan of plans) api.put(cattlePlans, plan);
  return api;
}

export function buildCattleScene(
  plans: readonly CattlePlan[],
  names: readonly string[],
  options: SceneOptions = {},
) {
  const { policyOf = () => ({}), refuse = () => false } = options;
  const api = serverWith(plans, names);
  const clock = new FakeClock(T0);
  const refused: string[] = [];
  const check = ({ metadata, ...rest }: KubeObject, subresource?: string): void => {
    if (!refuse({ metadata, ...rest }, subresource)) return;
    refused.push(metadata.name);
    throw refusal(403, 'Forbidden');
  };
  const create: KubeClient['create'] = async (resource, object, more) => {
    check(object);
    const metadata = { ...object.metadata, creationTimestamp: later(clock.monotonic()) };
    return await api.client.create(resource, { ...object, metadata }, more);
  };
  const replace: KubeClient['replace'] = async (resource, object, more) => {
    check(object, more?.subresource);
    return await api.client.replace(resource, object, more);
  };
  const newDialect = () => dialectWith(options);
  const client = { ...api.client, create, replace };
  const policyFor = (plan: CattlePlan): RolloutPolicy => {
    // The scene has no kubelets, so no image can be pulled before a node starts.
    const policy = buildPolicy({ prefetch: 'none', ...policyOf(plan) });
    return newDialect().planRules?.apply(plan, policy) ?? policy;
  };
  const hooks = options.hooks?.(clock);
  const parts = { clock, client, policyFor, ...defined({ hooks, drains: options.drains }) };
  let leader = buildReconciler(newDialect(), api, parts);
  const view = api.view(jobs);
  const made = (): readonly Job[] => {
    view.catchUp();
    return view.list();
  };
  return {
    api,
    clock,
    made,
    /** Replaces the leader with a new process, which remembers nothing. */
    killLeader: (): void => {
      leader = buildReconciler(newDialect(), api, parts);
    },
    refused,
    /**
     * Reconciles every Plan `times` times. Ignores the errors of a turn, because they are the refusals that the test
     * wants.
     */
    look: async (times = 4, stepMs = 1_000): Promise<void> => {
      for (let turn = 0; turn < times; turn++) {
        for (const { metadata } of plans) {
          leader.catchUp();
          await clock.runUntil(
            leader.reconcile(`${metadata.namespace}/${metadata.name}`).catch(() => undefined),
          );
        }
        await clock.advance(stepMs);
      }
    },
    atWork: () =>
      made().flatMap(({ metadata, status }) =>
        status ? [] : (metadata.labels?.[NODE_LABEL] ?? []),
      ),
    claims: () => names.flatMap((name) => claimOn(api.read(nodes, name)) ?? []),
    complete: (name: string | undefined): void => {
      const condition = {
        type: 'Complete',
        status: 'True',
        lastTransitionTime: later(clock.monotonic()),
      } as const;
      for (const job of made())
        if (job.metadata.labels?.[NODE_LABEL] === name)
          api.put(jobs, { ...job, status: { conditions: [condition] } });
    },
  };
}
