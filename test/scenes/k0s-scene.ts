/** What scenes with Plans of k0s have in common: a cluster with one controller and two workers, and a plan for all of them. */
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { apiVersionOf, configMaps, nodes, pods } from '../../src/kube/resources.ts';
import { type AgentPresence, encodePresence } from '../../src/signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { agents, asUsual, createK0sCluster, k0sController, type NextStep } from './k0s.ts';
import type { Scene } from './scene.ts';
import { showAll } from './shown.ts';
import type { Actor, Stage } from './stage.ts';

type Update = Parameters<typeof buildUpdate>[0];

/** The second of a scene in which its plan is created. */
const BEGIN = 60;
const POLICY = 'careful';

interface Given {
  readonly update?: Update;
  readonly policy?: UpgradePolicySpec;
  readonly next?: NextStep;
  /** What happens before the plan is created. */
  readonly before?: (stage: Stage) => Promise<void>;
  /** What happens after the plan was created. */
  readonly play: (stage: Stage) => Promise<void>;
  /** The names of the nodes about which people ask. */
  readonly about?: readonly string[];
  /** The controller of Refit; `none` if none runs. */
  readonly leader?: Actor | 'none';
  /** The numbers of controllers and of workers. */
  readonly hosts?: readonly [controllers: number, workers: number];
}

export const ONE_BY_ONE = { ...listed('w1', 'w2'), limits: { concurrent: 1 } };

export const UPDATE: Update = { targets: { controllers: listed('c1'), workers: ONE_BY_ONE } };

/** A cluster with one controller and two workers, and a plan for all of them. */
export function k0sScene(name: string, given: Given): Scene {
  const { hosts = [1, 2], leader = k0sController } = given;
  return {
    name,
    async play(stage) {
      await createK0sCluster(stage, ...hosts);
      if (given.policy) await stage.create(upgradePolicies, policyWith(given.policy));
      await given.before?.(stage);
      if (leader !== 'none') await stage.start(leader);
      await stage.start(agents(given.next));
      await stage.waitUntil(BEGIN);
      await stage.create(plans, planWith(given.update));
      await given.play(stage);
      await showAll(stage, plans, given.about ?? ['w1']);
    },
  };
}

export function policyWith(spec: UpgradePolicySpec) {
  return {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: POLICY },
    spec,
  };
}

export function planWith(update: Update = UPDATE, id = 'id1'): Plan {
  const { spec } = buildPlan({
    id,
    commands: [{ k0supdate: buildUpdate(update) }],
  });
  return {
    apiVersion: apiVersionOf(plans),
    kind: plans.kind,
    metadata: { name: 'autopilot' },
    spec,
  };
}

/** An agent on this node that does nothing more once it has reported the status. */
export function stuckAt(node: string, last: string): NextStep {
  return (step) => (step.name === node && step.status === last ? undefined : asUsual(step));
}

/** An agent on this node that reports a failure instead of the step after the status. */
export function failingAfter(
  node: string,
  last: string,
  status: 'Failed' | 'FailedDownload',
  reason: string,
): NextStep {
  return (step) =>
    step.name === node && step.status === last && step.seconds >= 5
      ? { status, report: { reason } }
      : asUsual(step);
}

export const NOT_FOUND = 'the download failed: https://example.com/k0s answered 404 Not Found';

export async function edit(stage: Stage, update: Update, id = 'id1'): Promise<void> {
  const { spec } = planWith({ ...UPDATE, ...update }, id);
  await stage.client.patch(plans, 'autopilot', { spec }, { type: 'merge' });
}

/** Deletes the plan, and creates another one. */
export async function replacePlan(stage: Stage, update: Update, id: string): Promise<void> {
  await stage.client.delete(plans, 'autopilot');
  await stage.create(plans, planWith(update, id));
}

/** Changes labels of a Node. A label that is null is removed. */
export async function label(
  stage: Stage,
  name: string,
  labels: Readonly<Record<string, string | null>>,
): Promise<void> {
  await stage.client.patch(nodes, name, { metadata: { labels } }, { type: 'merge' });
}

/** Lets the agent of a worker announce something. */
export async function announce(
  stage: Stage,
  name: string,
  more: Partial<AgentPresence>,
): Promise<void> {
  const presence = { version: '0.1.0', since: rfc3339(stage.clock.now()), ...more };
  const annotations = { [AGENT_ANNOTATION]: encodePresence(presence) };
  await stage.client.patch(nodes, name, { metadata: { annotations } }, { type: 'merge' });
}

export async function makeNotReady(stage: Stage, name: string): Promise<void> {
  const conditions = [{ type: 'Ready', status: 'False', reason: 'KubeletNotReady' }];
  const options = { type: 'merge', subresource: 'status' } as const;
  await stage.client.patch(nodes, name, { status: { conditions } }, options);
}

export function hookBefore(namespace: string): UpgradePolicySpec {
  const template = { spec: { containers: [{ name: 'a', image: 'registry.example.com/a' }] } };
  return {
    hooks: [{ name: 'backup', when: 'BeforePlan', timeout: '5m', job: { namespace, template } }],
  } as never;
}

/** A pod on w1 that belongs to a ReplicaSet, and a budget that allows no disruption. */
export async function createBudget(stage: Stage): Promise<void> {
  const labels = { app: 'web' };
  await stage.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web-1',
      namespace: 'default',
      labels,
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'a', controller: true },
      ],
    },
    spec: { nodeName: 'w1', containers: [{ name: 'a', image: 'registry.example.com/a' }] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  } as never);
  const budgets = {
    group: 'policy',
    version: 'v1',
    kind: 'PodDisruptionBudget',
    plural: 'poddisruptionbudgets',
    namespaced: true,
  } as const;
  await stage.create(budgets, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { minAvailable: 1, selector: { matchLabels: labels } },
  } as never);
}

/** Creates or changes the object that the health check of `checked` reads. */
export async function setHealth(stage: Stage, state: 'good' | 'bad'): Promise<void> {
  const metadata = { name: 'shop', namespace: 'default' };
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { state } };
  const found = (await stage.client.list(configMaps, { namespace: 'default' })).items;
  if (found.length === 0) await stage.create(configMaps, object);
  else
    await stage.client.patch(
      configMaps,
      'shop',
      { data: { state } },
      { type: 'merge', namespace: 'default' },
    );
}

/** A policy whose health check fails while the object of `setHealth` is bad. */
export const CHECKED: UpgradePolicySpec = {
  health: {
    resources: [
      {
        name: 'shop',
        apiVersion: 'v1',
        kind: 'ConfigMap',
        namespace: 'default',
        expression: 'object.data.state == "good"',
      },
    ],
  },
};
