/** Scenes with the Machines of one MachineDeployment, which are one plan. */
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { namespaces, nodes } from '../../src/kube/resources.ts';
import { agents, type NextStep } from './k0s.ts';
import { failingAfter, NOT_FOUND, policyWith, stuckAt } from './k0s-scene.ts';
import { createMachineNode, extension, requestUpdate } from './machine-scenes.ts';
import type { Scene } from './scene.ts';
import { showAll } from './shown.ts';
import type { Stage } from './stage.ts';

/** The second of a scene in which Cluster API asks for the first update. */
const BEGIN = 60;
const NAMES = ['w1', 'w2', 'w3'] as const;
const TO = 'v1.36.3+k0s.2';
const PLAN = 'capi/fleet/workers';

const OWNED = {
  owner: {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDeployment',
    name: 'workers',
    uid: 'uid-of-workers',
  },
  nodes: NAMES,
};

interface Given {
  readonly next?: NextStep;
  readonly policy?: UpgradePolicySpec;
  readonly before?: (stage: Stage) => Promise<void>;
  readonly play: (stage: Stage) => Promise<void>;
  readonly about?: readonly string[];
}

/** Cluster API chooses these Machines, one after the other. */
async function choose(stage: Stage, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await requestUpdate(stage, name, TO, `request-of-${name}`, OWNED);
    await stage.wait(1);
  }
}

/** Three Nodes, w1 to w3, whose Machines belong to the MachineDeployment `workers`. */
function scene(name: string, given: Given): Scene {
  return {
    name,
    async play(stage) {
      for (const namespace of ['refit-system', 'fleet'])
        await stage.create(namespaces, { metadata: { name: namespace } });
      for (const node of NAMES) await createMachineNode(stage, node);
      if (given.policy) await stage.create(upgradePolicies, policyWith(given.policy));
      await stage.start(extension);
      await stage.start(agents(given.next));
      await stage.waitUntil(BEGIN);
      await given.before?.(stage);
      await given.play(stage);
      await showAll(stage, nodes, given.about ?? ['w1', 'w2']);
    },
  };
}

export const OWNER_SCENES: readonly Scene[] = [
  scene('of one owner, the first is in progress, and the others are not chosen', {
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => {
      await choose(stage, 'w1');
      await stage.wait(30);
    },
  }),
  scene('of one owner, the second wave needs an approval', {
    policy: { waves: [{ count: 1 }, { approval: 'Manual' }] },
    play: async (stage) => {
      await choose(stage, 'w1', 'w2');
      await stage.wait(60);
    },
  }),
  scene('of one owner, all are done', {
    play: async (stage) => {
      await choose(stage, 'w2', 'w1', 'w3');
      await stage.wait(120);
    },
  }),
  scene('of one owner, the waves select one Machine', {
    policy: {
      waves: [{ selector: { matchLabels: { 'kubernetes.io/hostname': 'w1' } } }, {}],
    },
    play: async (stage) => {
      await choose(stage, 'w1');
      await stage.wait(30);
    },
  }),
  scene('of one owner, the first failed, so the others do not start', {
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    policy: { waves: [{ count: 1 }, {}] },
    play: async (stage) => {
      await choose(stage, 'w1', 'w2');
      await stage.wait(60);
    },
  }),
  scene('of one owner, the failed Machine is retried', {
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => {
      await choose(stage, 'w1');
      await stage.wait(30);
      await stage.refit('retry', 'machine/machine-of-w1');
      await stage.wait(3);
    },
    about: ['machine-of-w1'],
  }),
  scene('of one owner, the first is done, the second failed, and the third is not chosen', {
    next: failingAfter('w2', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => {
      await choose(stage, 'w1');
      await stage.wait(60);
      await choose(stage, 'w2');
      await stage.wait(60);
    },
    about: ['w1', 'w2', 'machine-of-w3'],
  }),
  scene('of one owner, the plan is aborted and started again', {
    next: stuckAt('w1', 'Downloading'),
    play: async (stage) => {
      await choose(stage, 'w1');
      await stage.wait(20);
      await stage.refit('abort', PLAN, '--reason', 'bad release');
      await stage.wait(5);
      await stage.refit('resume', PLAN);
      await stage.refit('why');
      await stage.refit('retry', PLAN);
      await stage.wait(5);
    },
    about: ['w1'],
  }),
  scene('of one owner, a chosen Machine is held', {
    before: async (stage) => await stage.refit('hold', 'w2', '--reason', 'disk is replaced'),
    play: async (stage) => {
      await choose(stage, 'w1', 'w2');
      await stage.wait(60);
    },
  }),
  scene('of one owner, the plan is paused, and its first Node is deleted', {
    next: stuckAt('w1', 'Downloading'),
    policy: { waves: [{ count: 1 }, {}] },
    play: async (stage) => {
      await choose(stage, 'w1', 'w2');
      await stage.wait(20);
      await stage.refit('pause', '--plan', PLAN);
      await stage.wait(20);
      await stage.client.delete(nodes, 'w1');
      await stage.wait(30);
    },
    about: ['w2', 'w3'],
  }),
  scene('of one owner, the plan is paused, and somebody removes the pause from its Node', {
    policy: { waves: [{ count: 1 }, {}] },
    play: async (stage) => {
      await choose(stage, 'w1', 'w2');
      await stage.refit('pause', '--plan', PLAN);
      await stage.wait(60);
      const metadata = { annotations: { 'upgrade.refit.dev/pause': null } };
      await stage.client.patch(nodes, 'w1', { metadata }, { type: 'merge' });
      await stage.wait(30);
      await stage.refit('why');
      await stage.refit('resume', '--plan', PLAN);
      await stage.wait(5);
    },
  }),
];
