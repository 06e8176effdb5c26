/** Scenes with Plans of Rancher: each state of a plan, and each cause of a wait or a failure. */
import { cattlePlans } from '../../src/api/kinds.ts';
import { type Job, jobs, nodes } from '../../src/kube/resources.ts';
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import {
  createRancherCluster,
  type JobEnd,
  jobRunner,
  k3sPlan,
  NAMESPACE,
  rancherController,
} from './rancher.ts';
import type { Scene } from './scene.ts';
import { showAll } from './shown.ts';
import type { Stage } from './stage.ts';

/** The second of a scene in which its Plans are created. */
const BEGIN = 60;
const FLAGS = { namespace: NAMESPACE } as const;

interface Given {
  readonly server?: Partial<CattleSpec>;
  /** The Plan for the agents; absent if the scene has none. */
  readonly agent?: Partial<CattleSpec>;
  readonly end?: JobEnd;
  readonly before?: (stage: Stage) => Promise<void>;
  readonly play: (stage: Stage) => Promise<void>;
  readonly about?: readonly string[];
  readonly isLed?: boolean;
}

/** A cluster with two servers and two agents. */
function scene(name: string, given: Given): Scene {
  return {
    name,
    async play(stage) {
      await createRancherCluster(stage, 2, 2);
      await given.before?.(stage);
      if (given.isLed !== false) await stage.start(rancherController);
      await stage.start(jobRunner(given.end));
      await stage.waitUntil(BEGIN);
      await stage.create(cattlePlans, k3sPlan('server', given.server));
      if (given.agent) await stage.create(cattlePlans, k3sPlan('agent', given.agent));
      await given.play(stage);
      await showAll(stage, cattlePlans, given.about ?? ['s1']);
    },
  };
}

const FAILS_ON_S1: JobEnd = (node) => ({
  seconds: 10,
  result: node === 's1' ? 'failed' : 'installed',
});
const PLAN = 'cattle/system-upgrade/k3s-server';

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

async function removeJobs(stage: Stage, node: string): Promise<void> {
  const labelSelector = `upgrade.cattle.io/node=${node}`;
  const found: readonly Job[] = (await stage.client.list(jobs, { labelSelector })).items;
  for (const { metadata } of found) await stage.client.delete(jobs, metadata.name, FLAGS);
}
