/** Scenes with Plans of k0s in which several causes meet. Each cause, time and advice must be told for the right node. */
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { listed } from '../support/builders/plans.ts';
import { asUsual, k0sController, type NextStep } from './k0s.ts';
import { createBudget, failingAfter, NOT_FOUND, k0sScene as scene } from './k0s-scene.ts';
import type { Scene } from './scene.ts';

/** A plan for two workers, the name of one of which begins with the name of the other. */
const W1_AND_W10 = { ...listed('w1', 'w10'), limits: { concurrent: 2 } };
const W1 = { matchLabels: { 'kubernetes.io/hostname': 'w1' } };
const FIRST = {
  selector: {
    matchExpressions: [
      { key: 'kubernetes.io/hostname', operator: 'In', values: ['w1', 'w2', 'w3'] },
    ],
  },
};
const THREE_WORKERS = { ...listed('w1', 'w2', 'w3'), limits: { concurrent: 1 } };

/** Policies that stop a plan for four workers before its last worker starts. */
const FORESEEABLE_STOPS: readonly [name: string, policy: UpgradePolicySpec][] = [
  [
    'a later wave settles and needs an approval',
    { waves: [{ ...FIRST, settle: '2h' }, { approval: 'Manual' }] },
  ],
  ['a later wave settles', { waves: [{ ...FIRST, settle: '2h' }, {}] }],
  [
    'the window closes before the end',
    { windows: [{ days: ['Friday'], start: '08:00', length: '2m', timeZone: 'UTC' }] },
  ],
];

/** Agents that report how long the upgrade took, from which the time that is left is estimated. */
const timed: NextStep = (step) => {
  const next = asUsual(step);
  return next?.status === 'UnCordoning'
    ? { ...next, report: { spent: { Restart: 20_000 } } }
    : next;
};

export const K0S_CAUSE_SCENES: readonly Scene[] = [
  scene('w1 and w10 exceed their deadline', {
    hosts: [1, 10],
    update: { targets: { workers: W1_AND_W10 } },
    policy: { deadlines: { target: '2m' } },
    next: () => undefined,
    play: async (stage) => await stage.wait(200),
    about: ['w1', 'w10'],
  }),
  scene('two tolerated deadlines', {
    hosts: [1, 10],
    update: { targets: { workers: { ...listed('w1', 'w10', 'w2'), limits: { concurrent: 2 } } } },
    policy: { deadlines: { target: '2m' }, failureBudget: 2 },
    next: (step) => (step.name === 'w2' ? asUsual(step) : undefined),
    play: async (stage) => await stage.wait(240),
    about: ['w1', 'w10'],
  }),
  ...FORESEEABLE_STOPS.map(([name, policy]) =>
    scene(name, {
      hosts: [1, 4],
      update: {
        targets: { workers: { ...listed('w1', 'w2', 'w3', 'w4'), limits: { concurrent: 1 } } },
      },
      policy,
      next: timed,
      play: async (stage) => await stage.wait(40),
      about: ['w3', 'w4'],
    }),
  ),
  scene('the last worker is held', {
    hosts: [1, 4],
    update: {
      targets: { workers: { ...listed('w1', 'w2', 'w3', 'w4'), limits: { concurrent: 1 } } },
    },
    next: timed,
    play: async (stage) => {
      await stage.refit('hold', 'w4', '--reason', 'disk is being replaced');
      await stage.wait(40);
    },
    about: ['w3', 'w4'],
  }),
  scene('no controller runs for five hours', {
    hosts: [1, 3],
    update: { targets: { workers: THREE_WORKERS } },
    leader: 'none',
    next: (step) => (step.name === 'w3' ? undefined : timed(step)),
    play: async (stage) => {
      const leader = await stage.start(k0sController);
      await stage.wait(50);
      await stage.end(leader);
      await stage.wait(10);
      await stage.clock.advance(5 * 3_600_000);
      await stage.wait(1);
    },
    about: ['w3'],
  }),
  scene('a tolerated failure, and a later abort', {
    hosts: [1, 3],
    update: { targets: { workers: THREE_WORKERS } },
    policy: { failureBudget: 1 },
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => {
      await stage.wait(20);
      await stage.refit('pause');
      await stage.wait(1200);
      await stage.refit('abort', '--reason', 'bad release');
      await stage.wait(600);
    },
  }),
  scene('a pinned worker is retried', {
    policy: { holds: 'Finish', versions: { pin: [{ selector: W1, version: 'v1.36.3+k0s.0' }] } },
    play: async (stage) => {
      await stage.wait(120);
      await stage.refit('retry', '--skipped');
      await stage.wait(60);
    },
    about: ['w1'],
  }),
  scene('a drain took too long, and the budget is known', {
    policy: { deadlines: { drain: '2m' } },
    before: createBudget,
    play: async (stage) => await stage.wait(260),
    about: ['w1'],
  }),
];
