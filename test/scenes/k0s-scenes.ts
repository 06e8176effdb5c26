/** Scenes with Plans of k0s: each state of a plan, and each cause of a wait or a failure. */
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { apiVersionOf, namespaces, nodes, pods } from '../../src/kube/resources.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { agents, asUsual, createK0sCluster, k0sController, type NextStep } from './k0s.ts';
import type { Scene } from './scene.ts';
import { showAll } from './shown.ts';
import type { Stage } from './stage.ts';

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
  /** False if no controller runs. */
  readonly isLed?: boolean;
}

const UPDATE: Update = {
  targets: {
    controllers: listed('c1'),
    workers: { ...listed('w1', 'w2'), limits: { concurrent: 1 } },
  },
};

/** A cluster with one controller and two workers, and a plan for all of them. */
function scene(name: string, given: Given): Scene {
  return {
    name,
    async play(stage) {
      await createK0sCluster(stage, 1, 2);
      if (given.policy) await stage.create(upgradePolicies, policyWith(given.policy));
      await given.before?.(stage);
      if (given.isLed !== false) await stage.start(k0sController);
      await stage.start(agents(given.next));
      await stage.waitUntil(BEGIN);
      await stage.create(plans, planWith(given.update));
      await given.play(stage);
      await showAll(stage, plans, given.about ?? ['w1']);
    },
  };
}

function policyWith(spec: UpgradePolicySpec) {
  return {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: POLICY },
    spec,
  };
}

function planWith(update: Update = UPDATE, id = 'id1'): Plan {
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
function stuckAt(node: string, last: string): NextStep {
  return (step) => (step.name === node && step.status === last ? undefined : asUsual(step));
}

/** An agent on this node that reports a failure instead of the step after the status. */
function failingAfter(
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

const NOT_FOUND = 'the download failed: https://example.com/k0s answered 404 Not Found';

export const K0S_SCENES: readonly Scene[] = [
  scene('running, first node in its download', {
    next: stuckAt('c1', 'Downloading'),
    play: async (stage) => await stage.wait(30),
    about: ['c1', 'w1'],
  }),
  scene('done', { play: async (stage) => await stage.wait(120) }),
  scene('no controller runs', { isLed: false, play: async (stage) => await stage.wait(60) }),
  scene('a silent agent', {
    next: stuckAt('w1', ''),
    play: async (stage) => await stage.wait(90),
    about: ['w1', 'w2'],
  }),
  scene('a download fails', {
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => await stage.wait(120),
    about: ['w1', 'w2'],
  }),
  scene('a controller fails', {
    next: failingAfter('c1', 'Restart', 'Failed', 'the new version did not answer'),
    play: async (stage) => await stage.wait(120),
    about: ['c1', 'w1'],
  }),
  scene('paused while a node is in progress', {
    next: stuckAt('w1', 'Downloading'),
    play: async (stage) => {
      await stage.wait(40);
      await stage.refit('pause');
      await stage.wait(10);
    },
  }),
  scene('paused and resumed', {
    play: async (stage) => {
      await stage.wait(20);
      await stage.refit('pause');
      await stage.wait(60);
      await stage.refit('resume');
      await stage.wait(5);
    },
  }),
  scene('aborted while a node is in progress', {
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('abort', '--reason', 'bad release');
      await stage.wait(10);
    },
    about: ['w1', 'w2'],
  }),
  scene('aborted, and ended', {
    play: async (stage) => {
      await stage.wait(30);
      await stage.refit('abort', '--reason', 'bad release');
      await stage.wait(60);
    },
    about: ['w1', 'w2'],
  }),
  scene('deleted while a node is in progress', {
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => {
      await stage.wait(60);
      await stage.client.delete(plans, 'autopilot');
      await stage.wait(20);
    },
  }),
  scene('edited while it runs', {
    play: async (stage) => {
      await stage.wait(25);
      await edit(stage, { version: 'v1.36.4+k0s.0' });
      await stage.wait(20);
    },
  }),
  scene('edited after its end', {
    play: async (stage) => {
      await stage.wait(120);
      await edit(stage, { version: 'v1.36.4+k0s.0' }, 'id2');
      await stage.wait(20);
    },
  }),
  scene('a worker has another platform than the plan', {
    before: async (stage) => {
      const labels = { 'kubernetes.io/arch': 'arm64' };
      await stage.client.patch(nodes, 'w2', { metadata: { labels } }, { type: 'merge' });
    },
    play: async (stage) => await stage.wait(30),
    about: ['w1', 'w2'],
  }),
  scene('a worker of the plan does not exist', {
    update: { targets: { workers: { ...listed('w1', 'w9'), limits: { concurrent: 1 } } } },
    play: async (stage) => await stage.wait(30),
    about: ['w1', 'w9'],
  }),
  scene('the version of the plan has no build', {
    update: { ...UPDATE, version: 'v1.36.3' },
    play: async (stage) => await stage.wait(30),
  }),
  scene('a worker is not Ready', {
    before: async (stage) => await makeNotReady(stage, 'w1'),
    play: async (stage) => await stage.wait(60),
    about: ['w1', 'w2'],
  }),
  scene('a worker is held', {
    before: async (stage) =>
      await stage.refit('hold', 'w1', '--reason', 'disk is being replaced', '--for', '4h'),
    play: async (stage) => await stage.wait(90),
    about: ['w1', 'w2'],
  }),
  scene('the window is closed', {
    policy: { windows: [{ days: ['Friday'], start: '22:00', length: '4h', timeZone: 'UTC' }] },
    play: async (stage) => await stage.wait(30),
    about: ['c1', 'w1'],
  }),
  scene('a wave needs an approval', {
    policy: {
      waves: [
        { nodes: { matchLabels: { 'kubernetes.io/hostname': 'w1' } } },
        { approval: 'Manual' },
      ],
    } as never,
    play: async (stage) => await stage.wait(90),
    about: ['w1', 'w2'],
  }),
  scene('a Job of a hook runs', {
    policy: hookBefore('refit-hooks'),
    before: async (stage) =>
      await stage.create(namespaces, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'refit-hooks' },
      }),
    play: async (stage) => await stage.wait(30),
  }),
  scene('the namespace of a hook does not exist', {
    policy: hookBefore('refit-hooks'),
    play: async (stage) => await stage.wait(30),
  }),
  scene('a budget blocks a drain', {
    before: async (stage) => await createBudget(stage),
    play: async (stage) => await stage.wait(90),
    about: ['w1', 'w2'],
  }),
  scene('a worker fails, and is retried', {
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => {
      await stage.wait(90);
      await stage.refit('retry', 'w1');
      await stage.wait(8);
    },
    about: ['w1', 'w2'],
  }),
  scene('rolled back after its end', {
    play: async (stage) => {
      await stage.wait(300);
      const url = 'https://example.com/k0s-old';
      await stage.refit('rollback', '--url', url, '--sha256', 'cd'.repeat(32));
      await stage.wait(30);
    },
    about: ['c1', 'w1'],
  }),
];

async function edit(stage: Stage, update: Update, id = 'id1'): Promise<void> {
  const { spec } = planWith({ ...UPDATE, ...update }, id);
  await stage.client.patch(plans, 'autopilot', { spec }, { type: 'merge' });
}

async function makeNotReady(stage: Stage, name: string): Promise<void> {
  const conditions = [{ type: 'Ready', status: 'False', reason: 'KubeletNotReady' }];
  const options = { type: 'merge', subresource: 'status' } as const;
  await stage.client.patch(nodes, name, { status: { conditions } }, options);
}

function hookBefore(namespace: string): UpgradePolicySpec {
  const template = { spec: { containers: [{ name: 'a', image: 'registry.example.com/a' }] } };
  return {
    hooks: [{ name: 'backup', when: 'BeforePlan', timeout: '5m', job: { namespace, template } }],
  } as never;
}

/** A pod on w1 that belongs to a ReplicaSet, and a budget that allows no disruption. */
async function createBudget(stage: Stage): Promise<void> {
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
