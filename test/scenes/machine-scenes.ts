/** Scenes with Machines of Cluster API, whose Nodes the extension upgrades in place: each state of an update. */
import { NODE_ANNOTATIONS } from '../../src/api/capi/machine.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { capi } from '../../src/dialects/capi/plan/capi-dialect.ts';
import {
  leftIn,
  type MachineOwner,
  rolloutFor,
  withOwnedRequest,
} from '../../src/dialects/capi/plan/machine-owners.ts';
import { withRequest } from '../../src/dialects/capi/plan/machine-update.ts';
import { namespaces, nodes } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { controllerOf } from './controller.ts';
import { agents, asUsual, type NextStep, presenceOf, worker } from './k0s.ts';
import {
  CHECKED,
  createBudget,
  failingAfter,
  NOT_FOUND,
  policyWith,
  setHealth,
  stuckAt,
} from './k0s-scene.ts';
import type { Scene } from './scene.ts';
import { showAll } from './shown.ts';
import type { Stage } from './stage.ts';

const TO = 'v1.36.3+k0s.2';
/** The second of a scene in which Cluster API asks for the updates. */
const BEGIN = 60;

export const extension = controllerOf({
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
  readonly about?: readonly string[];
}

/** Two Nodes, w1 and w2, whose Machines Cluster API updates at the same time. */
function scene(name: string, given: Given): Scene {
  return {
    name,
    async play(stage) {
      for (const name of ['refit-system', 'fleet'])
        await stage.create(namespaces, { metadata: { name } });
      for (const node of ['w1', 'w2']) await createMachineNode(stage, node);
      if (given.policy) await stage.create(upgradePolicies, policyWith(given.policy));
      if (given.isLed !== false) await stage.start(extension);
      await stage.start(agents(given.next));
      await stage.waitUntil(BEGIN);
      await given.before?.(stage);
      for (const node of ['w1', 'w2']) await requestUpdate(stage, node);
      await given.play(stage);
      await showAll(stage, nodes, given.about ?? ['w1']);
    },
  };
}

/** Creates the Node of a Machine of the Cluster zoo, with an agent of Refit. */
export async function createMachineNode(stage: Stage, node: string): Promise<void> {
  const annotations = {
    ...presenceOf(stage.clock.now()),
    [NODE_ANNOTATIONS.cluster]: 'zoo',
    [NODE_ANNOTATIONS.namespace]: 'fleet',
    [NODE_ANNOTATIONS.machine]: `machine-of-${node}`,
  };
  await stage.create(nodes, worker(node, annotations));
}

/** The MachineDeployment of the Machines, and the names of its Nodes. */
export interface OwnerOfScene {
  readonly owner: MachineOwner;
  readonly nodes: readonly string[];
}

/** Writes the request on the Node, as the hook of the extension does. Without an owner, the Machine is a plan of its own. */
export async function requestUpdate(
  stage: Stage,
  name: string,
  version = TO,
  uid = `machine-of-${name}`,
  owned?: OwnerOfScene,
): Promise<void> {
  const node = await stage.client.get(nodes, name);
  const all = (await stage.client.list(nodes)).items;
  const rollout = owned && rolloutFor(all, owned.owner, version);
  const update = {
    uid,
    machine: `fleet/machine-of-${name}`,
    version,
    role: 'worker',
    requested: rfc3339(stage.clock.now()),
    platform: 'linux-amd64',
    url: 'https://example.com/k0s',
  } as const;
  const requested =
    owned && rollout
      ? withOwnedRequest(node, update, owned.owner, rollout, leftIn(all, rollout) ?? owned.nodes)
      : withRequest(node, update);
  await stage.client.replace(nodes, requested);
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
  scene('a failed Machine waits for its next attempt', {
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    policy: { retry: { attempts: 2, backoff: '5m' } },
    play: async (stage) => await stage.wait(60),
  }),
  scene('a failed Machine is tried sooner than its policy says', {
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    policy: { retry: { attempts: 2, backoff: '5m' } },
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('retry', 'w1');
      await stage.wait(3);
    },
  }),
  scene('a failed Machine is tried again by its policy', {
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    policy: { retry: { attempts: 2, backoff: '30s' } },
    play: async (stage) => await stage.wait(120),
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
  scene('a Node rolled itself back', {
    next: (step) =>
      step.name === 'w1' && step.status === 'Restart' && step.seconds >= 5
        ? {
            status: 'Failed',
            report: { reason: 'the new version did not answer within 90 s', rolledBack: true },
          }
        : asUsual(step),
    play: async (stage) => await stage.wait(60),
  }),
  scene('a held Node is released', {
    before: async (stage) => await stage.refit('hold', 'w1', '--reason', 'disk is being replaced'),
    play: async (stage) => {
      await stage.wait(30);
      await stage.refit('unhold', 'w1');
      await stage.wait(5);
    },
  }),
  scene('a budget blocks a drain', {
    before: createBudget,
    play: async (stage) => await stage.wait(60),
  }),
  scene('a failing health check is accepted', {
    policy: CHECKED,
    next: stuckAt('w1', 'Downloading'),
    before: async (stage) => await setHealth(stage, 'bad'),
    play: async (stage) => {
      await stage.wait(20);
      const plan = 'capi/fleet/machine-of-w1';
      await stage.refit('accept', '--plan', plan, '--check', 'shop', '--reason', 'known fault');
      await stage.wait(10);
    },
  }),
  scene('the window is opened once', {
    policy: { windows: [{ days: ['Saturday'], start: '22:00', length: '4h', timeZone: 'UTC' }] },
    next: stuckAt('w1', 'Downloading'),
    play: async (stage) => {
      await stage.wait(20);
      await stage.refit('start', '--plan', 'capi/fleet/machine-of-w1', '--now', '--for', '2h');
      await stage.wait(10);
    },
  }),
  scene('an update is paused and resumed', {
    policy: { maxUnavailable: 1 },
    play: async (stage) => {
      await stage.wait(3);
      await stage.refit('pause', '--plan', 'capi/fleet/machine-of-w2');
      await stage.wait(30);
      await stage.refit('resume', '--plan', 'capi/fleet/machine-of-w2');
      await stage.wait(5);
    },
  }),
  scene('an update cannot be rolled back in the workload cluster', {
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('rollback', 'machine/machine-of-w1', '-n', 'fleet');
    },
  }),
  scene('a Node is deleted while its update is in progress', {
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => {
      await stage.wait(30);
      await stage.client.delete(nodes, 'w1');
      await stage.wait(10);
    },
    about: ['w1', 'w2'],
  }),
  scene('Cluster API asks for another version while a Node is in progress', {
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => {
      await stage.wait(30);
      await requestUpdate(stage, 'w1', 'v1.36.4+k0s.0');
      await stage.wait(10);
    },
  }),
];
