/** Scenes with Machines of Cluster API, whose Nodes the extension upgrades in place: each state of an update. */
import { NODE_ANNOTATIONS } from '../../src/api/capi/machine.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { capi } from '../../src/dialects/capi/plan/capi-dialect.ts';
import { withRequest } from '../../src/dialects/capi/plan/rollout.ts';
import { namespaces, nodes } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { controllerOf } from './controller.ts';
import { agents, type NextStep, presenceOf, worker } from './k0s.ts';
import { failingAfter, NOT_FOUND, policyWith, stuckAt } from './k0s-scene.ts';
import type { Scene } from './scene.ts';
import { showAll } from './shown.ts';
import type { Stage } from './stage.ts';

const TO = 'v1.36.3+k0s.2';
/** The second of a scene in which Cluster API asks for the updates. */
const BEGIN = 60;

const extension = controllerOf({
  component: 'refit-capi-extension',
  dialects: [capi],
  lease: { namespace: 'refit-system', name: 'refit-capi-extension' },
});

interface Given {
  readonly next?: NextStep;
  readonly policy?: UpgradePolicySpec;
  readonly isLed?: boolean;
  /** What happens before Cluster API asks for the updates. */
  readonly before?: (stage: Stage) => Promise<void>;
  readonly play: (stage: Stage) => Promise<void>;
}

/** Two Nodes, w1 and w2, whose Machines Cluster API updates at the same time. */
function scene(name: string, given: Given): Scene {
  return {
    name,
    async play(stage) {
      await stage.create(namespaces, { metadata: { name: 'refit-system' } });
      const presence = presenceOf(stage.clock.now());
      for (const node of ['w1', 'w2']) {
        const annotations = {
          ...presence,
          [NODE_ANNOTATIONS.cluster]: 'zoo',
          [NODE_ANNOTATIONS.namespace]: 'fleet',
          [NODE_ANNOTATIONS.machine]: `machine-of-${node}`,
        };
        await stage.create(nodes, worker(node, annotations));
      }
      if (given.policy) await stage.create(upgradePolicies, policyWith(given.policy));
      if (given.isLed !== false) await stage.start(extension);
      await stage.start(agents(given.next));
      await stage.waitUntil(BEGIN);
      await given.before?.(stage);
      for (const node of ['w1', 'w2']) await request(stage, node);
      await given.play(stage);
      await showAll(stage, nodes, ['w1']);
    },
  };
}

async function request(stage: Stage, name: string): Promise<void> {
  const node = await stage.client.get(nodes, name);
  const update = {
    uid: `machine-of-${name}`,
    machine: `fleet/machine-of-${name}`,
    version: TO,
    role: 'worker',
    requested: rfc3339(stage.clock.now()),
    platform: 'linux-amd64',
    url: 'https://example.com/k0s',
  } as const;
  await stage.client.replace(nodes, withRequest(node, update));
}

export const MACHINE_SCENES: readonly Scene[] = [
  scene('running', {
    next: stuckAt('w1', 'Downloading'),
    play: async (stage) => await stage.wait(30),
  }),
  scene('done', { play: async (stage) => await stage.wait(90) }),
  scene('no extension runs', { isLed: false, play: async (stage) => await stage.wait(30) }),
  scene('a silent agent', {
    next: stuckAt('w1', ''),
    play: async (stage) => await stage.wait(60),
  }),
  scene('a download fails', {
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => await stage.wait(60),
  }),
  scene('a failed Machine is retried', {
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('retry', 'w1');
      await stage.wait(8);
    },
  }),
  scene('the window is closed', {
    policy: { windows: [{ days: ['Friday'], start: '22:00', length: '4h', timeZone: 'UTC' }] },
    play: async (stage) => await stage.wait(30),
  }),
  scene('the policy is paused', {
    policy: { paused: true },
    play: async (stage) => await stage.wait(30),
  }),
  scene('a node is held', {
    before: async (stage) =>
      await stage.refit('hold', 'w1', '--reason', 'disk is being replaced', '--for', '4h'),
    play: async (stage) => await stage.wait(60),
  }),
  scene('an update is paused while the node is in progress', {
    next: stuckAt('w1', 'Downloading'),
    play: async (stage) => {
      await stage.wait(30);
      await stage.refit('pause', '--plan', 'capi/fleet/machine-of-w1');
      await stage.wait(5);
    },
  }),
  scene('an update is aborted while the node is in progress', {
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => {
      await stage.wait(30);
      await stage.refit('abort', '--plan', 'capi/fleet/machine-of-w1', '--reason', 'bad release');
      await stage.wait(5);
    },
  }),
];
