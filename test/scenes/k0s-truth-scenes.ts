/** Scenes with Plans of k0s in combinations in which the words could easily be untrue: edits, left-out nodes, and nodes that people change. */
import { plans } from '../../src/api/autopilot/plan.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { nodes } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { buildSignal } from '../support/builders/signals.ts';
import { recorded, statusOf } from '../support/builders/views.ts';
import { k0sController } from './k0s.ts';
import {
  edit,
  failingAfter,
  NOT_FOUND,
  ONE_BY_ONE,
  k0sScene as scene,
  stuckAt,
  UPDATE,
} from './k0s-scene.ts';
import type { Scene } from './scene.ts';
import type { Stage } from './stage.ts';

const WAVES: UpgradePolicySpec = {
  waves: [
    { selector: { matchLabels: { 'kubernetes.io/hostname': 'w1' } } },
    { approval: 'Manual' },
  ],
};
const NEXT = 'v1.36.4+k0s.0';

async function kubeletRuns(stage: Stage, name: string, kubeletVersion: string): Promise<void> {
  await stage.client.patch(
    nodes,
    name,
    { status: { nodeInfo: { kubeletVersion } } },
    { type: 'merge', subresource: 'status' },
  );
}

/** The leader of k0s signals a worker, and records the attempt a moment later. */
async function signalAsK0s(stage: Stage, name: string): Promise<void> {
  const created = rfc3339(stage.clock.now());
  const annotations = buildSignal({ created, command: { url: 'https://example.com/k0s' } });
  await stage.client.patch(nodes, name, { metadata: { annotations } }, { type: 'merge' });
  await stage.wait(2);
  const since = rfc3339(stage.clock.now());
  const workers = recorded({ [name]: 'SignalSent', w2: 'SignalPending' }, since);
  const status = statusOf('SchedulableWait', [], workers);
  await stage.client.patch(
    plans,
    'autopilot',
    { status },
    { type: 'merge', subresource: 'status' },
  );
}

export const K0S_TRUTH_SCENES: readonly Scene[] = [
  scene('the id is edited while a worker works', {
    policy: WAVES,
    next: stuckAt('w1', 'Downloading'),
    play: async (stage) => {
      await stage.wait(30);
      await stage.refit('approve', 'autopilot/autopilot', '--wave', '2');
      await stage.wait(5);
      await edit(stage, {}, 'id2');
      await stage.wait(30);
    },
    about: ['w1', 'w2'],
  }),
  scene('the id and the version are edited while a worker works', {
    policy: WAVES,
    play: async (stage) => {
      await stage.wait(22);
      await stage.refit('approve', 'autopilot/autopilot', '--wave', '2');
      await stage.wait(1);
      await edit(stage, { version: NEXT }, 'id2');
      await stage.wait(90);
    },
    about: ['w1', 'w2'],
  }),
  scene('the id is edited after the end', {
    policy: WAVES,
    play: async (stage) => {
      await stage.refit('approve', 'autopilot/autopilot', '--wave', '2');
      await stage.wait(120);
      await edit(stage, {}, 'id2');
      await stage.wait(30);
    },
    about: ['w1', 'w2'],
  }),
  scene('the version is edited while a worker works', {
    play: async (stage) => {
      await stage.wait(22);
      await edit(stage, { version: NEXT });
      await stage.wait(4);
    },
    about: ['c1', 'w1', 'w2'],
  }),
  scene('the version is edited while a worker works that the leader of k0s has signalled', {
    leader: 'none',
    update: { targets: { workers: ONE_BY_ONE } },
    play: async (stage) => {
      await signalAsK0s(stage, 'w1');
      await stage.wait(8);
      await stage.start(k0sController);
      await edit(stage, { targets: { workers: ONE_BY_ONE }, version: NEXT });
      await stage.wait(60);
    },
    about: ['w1', 'w2'],
  }),
  scene('edited after its end without a leader, and the policy restarts it', {
    leader: 'none',
    policy: { edits: { afterEnd: 'Restart' } },
    play: async (stage) => {
      const leader = await stage.start(k0sController);
      await stage.wait(120);
      await stage.end(leader);
      await edit(stage, { version: NEXT });
      await stage.wait(60);
    },
  }),
  scene('edited after its end, and a worker was left out', {
    policy: { holds: 'Finish' },
    before: async (stage) => await stage.refit('hold', 'w2', '--reason', 'disk is being replaced'),
    play: async (stage) => {
      await stage.wait(120);
      await stage.refit('unhold', 'w2');
      await edit(stage, { version: NEXT });
      await stage.wait(10);
    },
    about: ['w1', 'w2'],
  }),
  scene('one of three is done, and the others were left out', {
    policy: { holds: 'Finish' },
    before: async (stage) => {
      await stage.refit('hold', 'w1', '--reason', 'disk is being replaced');
      await stage.refit('hold', 'w2', '--reason', 'disk is being replaced');
    },
    play: async (stage) => await stage.wait(120),
    about: ['w1', 'w2'],
  }),
  scene('a worker fails, and another one never starts', {
    hosts: [1, 3],
    update: {
      targets: {
        workers: {
          discovery: { static: { nodes: ['w1', 'w2', 'w3'] } },
          limits: { concurrent: 1 },
        },
      },
    },
    next: failingAfter('w2', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => await stage.wait(120),
    about: ['w3'],
  }),
  scene('paused a moment ago', {
    play: async (stage) => {
      await stage.wait(20);
      await stage.refit('pause');
      await stage.wait(5);
    },
  }),
  scene('the nodes run the version already, with a forced update', {
    update: {
      ...UPDATE,
      version: 'v1.36.3+k0s.0',
      forceupdate: true,
      targets: { workers: ONE_BY_ONE },
    },
    play: async (stage) => await stage.wait(60),
    about: ['w1'],
  }),
  scene('after the end a node is deleted, and another one is upgraded by hand', {
    play: async (stage) => {
      await stage.wait(120);
      await stage.client.delete(nodes, 'w2');
      await kubeletRuns(stage, 'w1', 'v1.36.5');
      await stage.wait(180);
    },
    about: ['w1', 'w2'],
  }),
  scene('a worker is deleted before its turn, and the policy lets the plan go on without it', {
    hosts: [1, 3],
    policy: { goneNodes: 'Skip' },
    update: { targets: { workers: ONE_BY_ONE } },
    play: async (stage) => {
      await stage.wait(5);
      await stage.client.delete(nodes, 'w2');
      await stage.wait(5);
      await stage.refit('status');
      await stage.wait(180);
    },
    about: ['w2'],
  }),
];
