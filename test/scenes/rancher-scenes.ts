/** Scenes with Plans of Rancher: each state of a plan, and each cause of a wait or a failure. */
import { cattlePlans } from '../../src/api/kinds.ts';
import { nodes } from '../../src/kube/resources.ts';
import { FAILS_ON_S1, FLAGS, PLAN, removeJobs, rancherScene as scene } from './rancher-scene.ts';
import type { Scene } from './scene.ts';

export const RANCHER_SCENES: readonly Scene[] = [
  scene('running', {
    end: () => 'forever',
    play: async (stage) => await stage.wait(30),
    about: ['s1', 's2'],
  }),
  scene('done', { play: async (stage) => await stage.wait(120) }),
  scene('servers and then agents, while a server is in progress', {
    agent: {},
    end: () => 'forever',
    play: async (stage) => await stage.wait(30),
    about: ['s1', 'a1'],
  }),
  scene('no controller runs', { isLed: false, play: async (stage) => await stage.wait(60) }),
  scene('a Job fails', {
    end: FAILS_ON_S1,
    play: async (stage) => await stage.wait(120),
    about: ['s1', 's2'],
  }),
  scene('a Job fails, and is gone', {
    end: FAILS_ON_S1,
    play: async (stage) => {
      await stage.wait(60);
      await removeJobs(stage, 's1');
      await stage.wait(30);
    },
    about: ['s1', 's2'],
  }),
  scene('a Job succeeds, but the kubelet keeps its version', {
    end: (node) => ({ seconds: 10, result: node === 's1' ? 'nothing' : 'installed' }),
    play: async (stage) => await stage.wait(90),
    about: ['s1', 's2'],
  }),
  scene('the kubelet keeps its version until the deadline, and the Job is gone', {
    end: (node) => ({ seconds: 10, result: node === 's1' ? 'nothing' : 'installed' }),
    play: async (stage) => {
      await stage.wait(1200);
      await removeJobs(stage, 's1');
      await stage.wait(30);
    },
    about: ['s1', 's2'],
  }),
  scene('the version is older', {
    server: { version: 'v1.35.1+k3s1' },
    play: async (stage) => await stage.wait(30),
    about: ['s1'],
  }),
  scene('paused while a node is in progress', {
    end: () => 'forever',
    play: async (stage) => {
      await stage.wait(20);
      await stage.refit('pause');
      await stage.wait(10);
    },
    about: ['s1', 's2'],
  }),
  scene('two Plans, one of them is paused', {
    agent: {},
    end: () => 'forever',
    play: async (stage) => {
      await stage.wait(20);
      await stage.refit('pause', '--plan', PLAN);
      await stage.wait(10);
    },
    about: ['s1', 's2'],
  }),
  scene('paused after its end', {
    play: async (stage) => {
      await stage.wait(120);
      await stage.refit('pause');
      await stage.wait(10);
    },
  }),
  scene('aborted while a node is in progress', {
    end: () => 'forever',
    play: async (stage) => {
      await stage.wait(20);
      await stage.refit('abort', '--reason', 'bad release');
      await stage.wait(10);
    },
    about: ['s1', 's2'],
  }),
  scene('edited while it runs', {
    play: async (stage) => {
      await stage.wait(18);
      await stage.client.patch(
        cattlePlans,
        'k3s-server',
        { spec: { version: 'v1.36.4+k3s1' } },
        { ...FLAGS, type: 'merge' },
      );
      await stage.wait(8);
    },
    about: ['s1', 's2'],
  }),
  scene('edited after its end', {
    play: async (stage) => {
      await stage.wait(120);
      await stage.client.patch(
        cattlePlans,
        'k3s-server',
        { spec: { version: 'v1.36.4+k3s1' } },
        { ...FLAGS, type: 'merge' },
      );
      await stage.wait(15);
    },
    about: ['s1', 's2'],
  }),
  scene('deleted while a node is in progress', {
    end: () => 'forever',
    play: async (stage) => {
      await stage.wait(20);
      await stage.client.delete(cattlePlans, 'k3s-server', FLAGS);
      await stage.wait(20);
    },
  }),
  scene('a node is not Ready', {
    before: async (stage) => {
      const conditions = [{ type: 'Ready', status: 'False', reason: 'KubeletNotReady' }];
      const options = { type: 'merge', subresource: 'status' } as const;
      await stage.client.patch(nodes, 's1', { status: { conditions } }, options);
    },
    play: async (stage) => await stage.wait(40),
    about: ['s1', 's2'],
  }),
  scene('a node is held', {
    before: async (stage) =>
      await stage.refit('hold', 's1', '--reason', 'disk is being replaced', '--for', '4h'),
    play: async (stage) => await stage.wait(60),
    about: ['s1', 's2'],
  }),
  scene('a selector that matches nothing', {
    server: { nodeSelector: { matchLabels: { role: 'none' } } },
    play: async (stage) => await stage.wait(30),
    about: [],
  }),
  scene('no version and no channel', {
    server: { version: '' },
    play: async (stage) => await stage.wait(30),
  }),
];
