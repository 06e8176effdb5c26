/** Scenes with Plans of Rancher: policies, controls, roll-backs, and nodes and Jobs that change while a Plan runs. */
import { cattlePlans } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { PULL_LABEL } from '../../src/drain/own-pods.ts';
import { jobs, nodes, pods } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import { endedJob } from './ended-job.ts';
import { CHECKED, setHealth } from './k0s-scene.ts';
import { NAMESPACE } from './rancher.ts';
import { FAILS_ON_S1, FLAGS, PLAN, removeJobs, rancherScene as scene } from './rancher-scene.ts';
import type { Scene } from './scene.ts';
import type { Stage } from './stage.ts';

const IMAGE = 'registry.example.com/k3s-downgrade';
const BACK = ['--plan', PLAN, '--image', IMAGE, '--reason', 'bad release', '--yes'] as const;
const WAVES: UpgradePolicySpec = {
  waves: [
    { selector: { matchLabels: { 'kubernetes.io/hostname': 'a1' } } },
    { approval: 'Manual' },
  ],
};
/** A Plan for agents without a Plan for servers: it has no `prepare`, so it waits for nothing. */
const AGENTS: Partial<CattleSpec> = {
  nodeSelector: {
    matchExpressions: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'DoesNotExist' }],
  },
};

/** A scene that looks at the Plan some seconds after somebody rolled it back. */
function rolledBack(name: string, seconds: number): Scene {
  return scene(name, {
    play: async (stage) => {
      await stage.wait(120);
      // The image of the Plan may refuse older versions, so this command refuses to roll the Plan back.
      await stage.refit('rollback', '--plan', PLAN, '--reason', 'bad release', '--yes');
      await stage.refit('rollback', ...BACK);
      await stage.wait(seconds);
    },
    about: ['s1', 's2'],
  });
}

/** The kubelet cannot pull the image of the first Job that the selector selects. */
async function blockImage(
  stage: Stage,
  labelSelector = 'upgrade.cattle.io/node=s1',
): Promise<void> {
  const [job] = (await stage.client.list(jobs, { labelSelector })).items;
  if (job === undefined) throw new Error('there is no such Job');
  const { name, uid = '', labels = {} } = job.metadata;
  const message = 'Back-off pulling image "rancher/k3s-upgrade:v1.36.3-k3s1"';
  const waiting = { waiting: { reason: 'ImagePullBackOff', message } };
  await stage.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${name}-x`,
      namespace: NAMESPACE,
      labels: { ...labels, 'job-name': name, 'batch.kubernetes.io/job-name': name },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true }],
    },
    spec: { nodeName: 's1', containers: [{ name: 'upgrade', image: 'rancher/k3s-upgrade' }] },
    status: { phase: 'Pending', containerStatuses: [{ name: 'upgrade', state: waiting }] },
  });
}

const TOO_LONG = {
  reason: 'DeadlineExceeded',
  message: 'Job was active longer than specified deadline',
} as const;

export const RANCHER_RUN_SCENES: readonly Scene[] = [
  rolledBack('rolled back, and a server is in progress', 5),
  rolledBack('rolled back, and ended', 120),
  scene('rolled back, and a server fails', {
    play: async (stage) => {
      await stage.wait(120);
      await stage.refit('rollback', ...BACK);
      await stage.wait(2);
      const at = rfc3339(stage.clock.now());
      for (const job of (await stage.client.list(jobs)).items) {
        const ended = { status: endedJob(job, 'Failed', at, TOO_LONG) };
        const options = { ...FLAGS, type: 'merge', subresource: 'status' } as const;
        await stage.client.patch(jobs, job.metadata.name, ended, options);
      }
      await stage.wait(60);
    },
    about: ['s1', 's2'],
  }),
  scene('two servers at the same time', {
    server: { concurrency: 2 },
    end: () => 'forever',
    play: async (stage) => await stage.wait(20),
    about: ['s1'],
  }),
  scene('a Job cannot pull its image', {
    end: () => 'forever',
    play: async (stage) => {
      await stage.wait(10);
      await blockImage(stage);
      await stage.wait(30);
    },
    about: ['s1', 's2'],
  }),
  scene('a node waits until its image is pulled', {
    canPull: false,
    play: async (stage) => await stage.wait(5),
    about: ['s1'],
  }),
  scene('an image cannot be pulled before the cordon', {
    canPull: false,
    play: async (stage) => {
      await stage.wait(10);
      await blockImage(stage, PULL_LABEL);
      await stage.wait(30);
    },
    about: ['s1', 's2'],
  }),
  scene('a failed server is retried', {
    end: FAILS_ON_S1,
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('retry', 's1');
      await stage.wait(5);
    },
    about: ['s1', 's2'],
  }),
  scene('paused and resumed', {
    play: async (stage) => {
      await stage.wait(5);
      await stage.refit('pause');
      await stage.wait(30);
      await stage.refit('resume');
      await stage.wait(5);
    },
    about: ['s2'],
  }),
  scene('aborted, and ended', {
    play: async (stage) => {
      await stage.wait(5);
      await stage.refit('abort', '--reason', 'bad release');
      await stage.wait(60);
    },
    about: ['s1', 's2'],
  }),
  scene('the policy is paused', {
    policy: { paused: true },
    play: async (stage) => await stage.wait(30),
  }),
  scene('the policy requires a digest of the image', {
    policy: { payloads: { requireImageDigest: true } },
    play: async (stage) => await stage.wait(30),
  }),
  scene('the window of the Plan is closed', {
    server: {
      window: { days: ['saturday'], startTime: '22:00', endTime: '23:00', timeZone: 'UTC' },
    },
    play: async (stage) => await stage.wait(30),
  }),
  scene('the window of the policy is opened once', {
    policy: { windows: [{ days: ['Saturday'], start: '22:00', length: '4h', timeZone: 'UTC' }] },
    end: () => 'forever',
    play: async (stage) => {
      await stage.wait(10);
      await stage.refit('start', '--now', '--for', '2h', '--reason', 'urgent fix');
      await stage.wait(10);
    },
  }),
  scene('a wave of agents needs an approval', {
    policy: WAVES,
    server: AGENTS,
    play: async (stage) => await stage.wait(60),
    about: ['a1', 'a2'],
  }),
  scene('a wave of agents is approved', {
    policy: WAVES,
    server: AGENTS,
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('approve', `${NAMESPACE}/k3s-server`, '--wave', '2');
      await stage.wait(5);
    },
    about: ['a1', 'a2'],
  }),
  scene('a failing health check is accepted', {
    policy: CHECKED,
    end: () => 'forever',
    before: async (stage) => await setHealth(stage, 'bad'),
    play: async (stage) => {
      await stage.wait(30);
      await stage.refit(
        'accept',
        `${NAMESPACE}/k3s-server`,
        '--check',
        'shop',
        '--reason',
        'known fault',
      );
      await stage.wait(10);
    },
  }),
  scene('a failure budget is left', {
    policy: { failureBudget: 1 },
    server: AGENTS,
    end: (node) => ({ seconds: 10, result: node === 'a1' ? 'failed' : 'installed' }),
    play: async (stage) => await stage.wait(90),
    about: ['a1', 'a2'],
  }),
  scene('a server is deleted while it is in progress', {
    end: () => 'forever',
    play: async (stage) => {
      await stage.wait(20);
      await stage.client.delete(nodes, 's1');
      await removeJobs(stage, 's1');
      await stage.wait(20);
    },
    about: ['s1', 's2'],
  }),
  scene('an agent joins after the end', {
    server: AGENTS,
    end: (node) => (node === 'a3' ? 'forever' : { seconds: 10, result: 'installed' }),
    play: async (stage) => {
      await stage.wait(60);
      const node = await stage.client.get(nodes, 'a2');
      const own = Object.entries(node.metadata.labels ?? {}).filter(
        ([key]) => !key.startsWith('plan.upgrade.cattle.io/'),
      );
      const labels = { ...Object.fromEntries(own), 'kubernetes.io/hostname': 'a3' };
      const metadata = { name: 'a3', labels };
      const status = { ...node.status, nodeInfo: { kubeletVersion: 'v1.36.2+k3s1' } };
      await stage.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata, status });
      await stage.wait(5);
    },
    about: ['a3'],
  }),
  scene('two Plans for the same nodes', {
    end: () => 'forever',
    play: async (stage) => {
      const { apiVersion, kind, spec } = await stage.client.get(cattlePlans, 'k3s-server', FLAGS);
      const metadata = { name: 'k3s-again', namespace: NAMESPACE };
      await stage.create(cattlePlans, { apiVersion, kind, metadata, spec } as never);
      await stage.wait(30);
    },
    about: ['s1'],
  }),
  scene('the version skips a minor version', {
    server: { version: 'v1.38.1+k3s1' },
    play: async (stage) => await stage.wait(30),
  }),
  scene('deleted after its end', {
    play: async (stage) => {
      await stage.wait(120);
      await stage.client.delete(cattlePlans, 'k3s-server', FLAGS);
      await stage.wait(10);
    },
    about: [],
  }),
];
