/** Scenes with Plans of k0s in which several causes meet. Each cause, time and advice must be told for the right node. */
import { listed } from '../support/builders/plans.ts';
import { asUsual } from './k0s.ts';
import { k0sScene as scene } from './k0s-scene.ts';
import type { Scene } from './scene.ts';

/** A plan for two workers, the name of one of which begins with the name of the other. */
const W1_AND_W10 = { ...listed('w1', 'w10'), limits: { concurrent: 2 } };

export const K0S_TRUTH_SCENES: readonly Scene[] = [
  scene('w1 and w10 exceed their deadline', {
    hosts: [1, 10],
    update: { targets: { workers: W1_AND_W10 } },
    policy: { deadlines: { target: '2m' } },
    next: () => undefined,
    play: async (stage) => await stage.wait(200),
    about: ['w1', 'w10'],
  }),
  scene('w1 and w10 exceed their deadline, and the policy allows it', {
    hosts: [1, 10],
    update: { targets: { workers: { ...listed('w1', 'w10', 'w2'), limits: { concurrent: 2 } } } },
    policy: { deadlines: { target: '2m' }, failureBudget: 2 },
    next: (step) => (step.name === 'w2' ? asUsual(step) : undefined),
    play: async (stage) => await stage.wait(240),
    about: ['w1', 'w10'],
  }),
];
