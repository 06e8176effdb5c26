/** Scenes with Plans of Rancher in combinations in which the words could easily be untrue. */
import { rancherScene as scene } from './rancher-scene.ts';
import type { Scene } from './scene.ts';

export const RANCHER_TRUTH_SCENES: readonly Scene[] = [
  scene('the nodes run the version already', {
    server: { version: 'v1.36.2+k3s1' },
    play: async (stage) => await stage.wait(60),
    about: ['s1'],
  }),
];
