/** Scenes with Plans of Rancher in combinations in which the words could easily be untrue. */
import { rancherController } from './rancher.ts';
import { rancherScene as scene } from './rancher-scene.ts';
import type { Scene } from './scene.ts';

export const RANCHER_TRUTH_SCENES: readonly Scene[] = [
  scene('a server rests for longer than the deadline of its kubelet, and no controller runs', {
    server: { postCompleteDelay: '30m' },
    isLed: false,
    play: async (stage) => {
      const leader = await stage.start(rancherController);
      await stage.wait(30);
      await stage.end(leader);
      await stage.wait(60);
    },
    about: ['s1', 's2'],
  }),
  scene('the nodes run the version already', {
    server: { version: 'v1.36.2+k3s1' },
    play: async (stage) => await stage.wait(60),
    about: ['s1'],
  }),
];
