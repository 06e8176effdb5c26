/** Scenes with Plans of k0s: each state of a plan, and each cause of a wait or a failure. */
import { plans } from '../../src/api/autopilot/plan.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { namespaces, nodes } from '../../src/kube/resources.ts';
import { listed } from '../support/builders/plans.ts';
import {
  CHECKED,
  createBudget,
  edit,
  failingAfter,
  hookBefore,
  makeNotReady,
  NOT_FOUND,
  k0sScene as scene,
  setHealth,
  stuckAt,
  UPDATE,
} from './k0s-scene.ts';
import type { Scene } from './scene.ts';

/** The first wave has w1, and the second one needs an approval. */
const WAVES: UpgradePolicySpec = {
  waves: [
    { selector: { matchLabels: { 'kubernetes.io/hostname': 'w1' } } },
    { approval: 'Manual' },
  ],
};

export const K0S_SCENES: readonly Scene[] = [
  scene('running, first node in its download', {
    next: stuckAt('c1', 'Downloading'),
    play: async (stage) => await stage.wait(30),
    about: ['c1', 'w1'],
  }),
  scene('done', { play: async (stage) => await stage.wait(120) }),
  scene('no controller runs', { leader: 'none', play: async (stage) => await stage.wait(60) }),
  scene('no controller runs, and a policy has a health check', {
    leader: 'none',
    policy: CHECKED,
    before: async (stage) => await setHealth(stage, 'bad'),
    play: async (stage) => await stage.wait(60),
  }),
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
    policy: WAVES,
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
  scene('a wave is approved', {
    policy: WAVES,
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('approve', 'autopilot/autopilot', '--wave', '2');
      await stage.wait(8);
    },
    about: ['w1', 'w2'],
  }),
  scene('a health check fails before the start', {
    policy: CHECKED,
    before: async (stage) => await setHealth(stage, 'bad'),
    play: async (stage) => await stage.wait(60),
  }),
  scene('a health check fails after the first worker', {
    policy: CHECKED,
    before: async (stage) => await setHealth(stage, 'good'),
    play: async (stage) => {
      await stage.wait(20);
      await setHealth(stage, 'bad');
      await stage.wait(60);
    },
    about: ['w1', 'w2'],
  }),
  scene('a failing health check is accepted', {
    policy: CHECKED,
    before: async (stage) => await setHealth(stage, 'bad'),
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit(
        'accept',
        'autopilot/autopilot',
        '--check',
        'shop',
        '--reason',
        'known fault',
      );
      await stage.wait(30);
    },
  }),
  scene('somebody else has cordoned a worker', {
    before: async (stage) =>
      void (await stage.client.patch(
        nodes,
        'w1',
        { spec: { unschedulable: true } },
        { type: 'merge' },
      )),
    play: async (stage) => await stage.wait(90),
    about: ['w1', 'w2'],
  }),
  scene('a worker fails, and the policy allows it', {
    policy: { failureBudget: 1 },
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => await stage.wait(120),
    about: ['w1', 'w2'],
  }),
  scene('a worker fails, and the leader rolls the plan back', {
    policy: { onFailure: 'RollBack' },
    next: failingAfter('w2', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => await stage.wait(240),
    about: ['w1', 'w2'],
  }),
  scene('the policy is paused', {
    policy: { paused: true },
    play: async (stage) => await stage.wait(30),
    about: ['c1'],
  }),
  scene('the silent agent has a deadline', {
    next: stuckAt('w1', ''),
    policy: { deadlines: { target: '2m' } },
    play: async (stage) => await stage.wait(300),
    about: ['w1', 'w2'],
  }),
  scene('a held worker is left out at the end', {
    policy: { holds: 'Finish' },
    before: async (stage) => await stage.refit('hold', 'w1', '--reason', 'disk is being replaced'),
    play: async (stage) => await stage.wait(120),
    about: ['w1', 'w2'],
  }),
  scene('edited while it runs, and ended', {
    play: async (stage) => {
      await stage.wait(25);
      await edit(stage, { version: 'v1.36.4+k0s.0' });
      await stage.wait(120);
    },
    about: ['c1', 'w1', 'w2'],
  }),
  scene('written into a file, and shown again', {
    policy: WAVES,
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('why', '--dump', stage.path('turn.json'));
      await stage.refitAlone('replay', stage.path('turn.json'));
    },
  }),
  scene('edited while it runs, and aborted', {
    play: async (stage) => {
      await stage.wait(25);
      await edit(stage, { version: 'v1.36.4+k0s.0' });
      await stage.refit('abort', '--reason', 'bad release');
      await stage.wait(60);
    },
    about: ['c1', 'w1', 'w2'],
  }),
  scene('deleted after its end', {
    play: async (stage) => {
      await stage.wait(120);
      await stage.client.delete(plans, 'autopilot');
      await stage.wait(20);
    },
  }),
];
