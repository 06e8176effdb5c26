/** Scenes with Plans of k0s that run or have ended: controls, edits, roll-backs, hooks, checks, and reports of agents. */
import { plans } from '../../src/api/autopilot/plan.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { type Job, jobs, leases, namespaces, nodes } from '../../src/kube/resources.ts';
import { downloadCheckId } from '../../src/signal/prefetch.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { listed, selected } from '../support/builders/plans.ts';
import { endedJob } from './ended-job.ts';
import { asUsual, k0sController, type NextStep, presenceOf, worker } from './k0s.ts';
import {
  announce,
  CHECKED,
  createBudget,
  edit,
  failingAfter,
  label,
  NOT_FOUND,
  ONE_BY_ONE,
  k0sScene as scene,
  setHealth,
  stuckAt,
  UPDATE,
} from './k0s-scene.ts';
import type { Scene } from './scene.ts';
import type { Actor, Stage } from './stage.ts';

type Hook = NonNullable<UpgradePolicySpec['hooks']>[number];

const NO_ANSWER = 'the new version did not answer within 90 s';
const BACK = [
  '--url',
  'linux-amd64=https://example.com/k0s-old',
  '--sha256',
  `linux-amd64=${'cd'.repeat(32)}`,
  '--reason',
  'bad release',
  '--yes',
] as const;

/** A policy with one hook that is a Job. */
function hooked(when: Hook['when'], more: Partial<Hook> = {}): UpgradePolicySpec {
  const template = { spec: { containers: [{ name: 'a', image: 'registry.example.com/a' }] } };
  const job = { namespace: 'refit-hooks', template };
  return { hooks: [{ name: 'backup', when, timeout: '5m', job, ...more }] };
}

/** The Job controller: the Jobs of hooks fail, or complete, ten seconds after their creation. */
function hookJobs(end: 'Complete' | 'Failed'): Actor {
  return async ({ client, clock }) => {
    const look = async (job: Job): Promise<void> => {
      const { name, namespace, creationTimestamp = '' } = job.metadata;
      if (job.status?.conditions || clock.now() - Date.parse(creationTimestamp) < 10_000) return;
      const ended = { status: endedJob(job, end, rfc3339(clock.now())) };
      await client.patch(jobs, name, ended, { namespace, type: 'merge', subresource: 'status' });
    };
    return await Promise.resolve({
      tick: async () => {
        for (const job of (await client.list(jobs)).items) await look(job);
      },
    });
  };
}

async function createNamespace(stage: Stage): Promise<void> {
  const metadata = { name: 'refit-hooks' };
  await stage.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
}

/** A scene whose policy has one hook. */
function hookScene(
  name: string,
  policy: UpgradePolicySpec,
  end: 'Complete' | 'Failed' | 'never',
  more: {
    readonly before?: (stage: Stage) => Promise<void>;
    readonly play?: (stage: Stage) => Promise<void>;
  } = {},
): Scene {
  return scene(name, {
    policy,
    before: async (stage) => {
      await createNamespace(stage);
      if (end !== 'never') await stage.start(hookJobs(end));
      await more.before?.(stage);
    },
    play: more.play ?? (async (stage) => await stage.wait(90)),
    about: ['w1', 'w2'],
  });
}

/** The Lease of the Node no longer says that the leader may drain the Node, so the agent drains it. */
async function drainItself(stage: Stage): Promise<void> {
  await stage.client.delete(leases, 'w1', { namespace: 'kube-node-lease' });
}

/** The agents of the workers answer that they cannot download what the plan names. */
const cannotDownload: Actor = async ({ client, clock }) =>
  await Promise.resolve({
    tick: async () => {
      for (const node of (await client.list(nodes)).items) {
        const id = downloadCheckId(node.metadata.annotations ?? {});
        const problem = 'https://example.com/k0s: example.com answered 404 Not Found';
        const annotations = presenceOf(clock.now(), undefined, { checked: { id, problem } });
        const { name } = node.metadata;
        await client.patch(nodes, name, { metadata: { annotations } }, { type: 'merge' });
      }
    },
  });

/** An agent on w1 that adds this to its reports. */
function reporting(report: NonNullable<ReturnType<NextStep>>['report']): NextStep {
  return (step) => {
    const next = asUsual(step);
    return next && step.name === 'w1' ? { ...next, report: { ...report } } : next;
  };
}

async function join(stage: Stage): Promise<void> {
  await stage.create(nodes, worker('w3', presenceOf(stage.clock.now())));
  await label(stage, 'w3', { pool: 'blue' });
}

/** A plan for the workers of a pool, to which w1 and w2 belong. */
const POOL = { targets: { workers: { ...selected('pool=blue'), limits: { concurrent: 1 } } } };

async function createPool(stage: Stage): Promise<void> {
  for (const name of ['w1', 'w2']) await label(stage, name, { pool: 'blue' });
}

export const K0S_RUN_SCENES: readonly Scene[] = [
  scene('two workers at the same time', {
    hosts: [1, 3],
    update: { targets: { workers: { ...listed('w1', 'w2', 'w3'), limits: { concurrent: 2 } } } },
    next: stuckAt('w1', 'ApplyingUpdate'),
    play: async (stage) => await stage.wait(12),
    about: ['w1', 'w3'],
  }),
  scene('three controllers', {
    hosts: [3, 0],
    update: { targets: { controllers: listed('c1', 'c2', 'c3') } },
    next: stuckAt('c2', 'Restart'),
    play: async (stage) => await stage.wait(40),
    about: ['c2', 'c3'],
  }),
  scene('the controller stops while a node is in progress', {
    leader: 'none',
    play: async (stage) => {
      const leader = await stage.start(k0sController);
      await stage.wait(30);
      await stage.end(leader);
      await stage.wait(120);
    },
  }),
  scene('a selector of the plan matches nothing', {
    update: POOL,
    play: async (stage) => await stage.wait(30),
    about: [],
  }),
  scene('a worker joins while the plan runs, and is left out', {
    update: POOL,
    before: createPool,
    next: stuckAt('w2', 'Downloading'),
    play: async (stage) => {
      await stage.wait(10);
      await join(stage);
      await stage.wait(30);
    },
    about: ['w3'],
  }),
  scene('a worker joins while the plan runs, and is included', {
    policy: { newNodes: 'Include' },
    update: POOL,
    before: createPool,
    next: stuckAt('w2', 'Downloading'),
    play: async (stage) => {
      await stage.wait(10);
      await join(stage);
      await stage.wait(30);
    },
    about: ['w3'],
  }),
  scene('a worker is deleted while it is in progress', {
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => {
      await stage.wait(60);
      await stage.client.delete(nodes, 'w1');
      await stage.wait(20);
    },
    about: ['w1', 'w2'],
  }),
  scene('edited after its end, and the policy restarts it', {
    policy: { edits: { afterEnd: 'Restart' } },
    play: async (stage) => {
      await stage.wait(120);
      await edit(stage, { version: 'v1.36.4+k0s.0' });
      await stage.wait(10);
    },
  }),
  scene('edited while it runs, and the policy ignores edits', {
    policy: { edits: { whileRunning: 'Ignore' } },
    play: async (stage) => {
      await stage.wait(25);
      await edit(stage, { version: 'v1.36.4+k0s.0' });
      await stage.wait(20);
    },
  }),
  scene('all failed workers are retried automatically', {
    policy: { retry: { attempts: 2, backoff: '30s' } },
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => await stage.wait(180),
    about: ['w1'],
  }),
  scene('a worker rolled itself back', {
    next: (step) =>
      step.name === 'w1' && step.status === 'Restart' && step.seconds >= 5
        ? { status: 'Failed', report: { reason: NO_ANSWER, rolledBack: true } }
        : asUsual(step),
    play: async (stage) => await stage.wait(120),
    about: ['w1', 'w2'],
  }),
  scene('a worker rolls itself back now', {
    next: (step) => {
      if (step.name !== 'w1' || step.status !== 'Restart') return asUsual(step);
      return step.seconds >= 5
        ? { status: 'RollingBack', report: { reason: NO_ANSWER } }
        : undefined;
    },
    play: async (stage) => await stage.wait(60),
    about: ['w1', 'w2'],
  }),
  scene('a worker failed, and its service may still restart', {
    next: (step) =>
      step.name === 'w1' && step.status === 'Restart' && step.seconds >= 5
        ? { status: 'Failed', report: { reason: NO_ANSWER, rolledBack: false } }
        : asUsual(step),
    play: async (stage) => await stage.wait(90),
    about: ['w1'],
  }),
  scene('the agent of a worker refuses the signal', {
    next: (step) =>
      step.name === 'w1' && step.status === ''
        ? {
            status: 'Failed',
            report: { reason: 'the URL is not below https://internal.example.com/', refused: true },
          }
        : asUsual(step),
    play: async (stage) => await stage.wait(60),
    about: ['w1'],
  }),
  scene('an agent removed what its host kept', {
    next: reporting({ removed: 'v1.36.1+k0s.0' }),
    play: async (stage) => await stage.wait(120),
    about: ['w1'],
  }),
  scene('the agent of a controller took a snapshot of etcd', {
    policy: { etcdSnapshot: { mode: 'Try' } },
    next: (step) => {
      const next = asUsual(step);
      const at = rfc3339(Date.parse(step.signal.created) + 1000);
      return next && step.name === 'c1' && step.status !== ''
        ? { ...next, report: { etcdSnapshot: { at, path: '/var/lib/k0s/etcd-1.db' } } }
        : next;
    },
    play: async (stage) => await stage.wait(90),
    about: ['c1'],
  }),
  scene('agents cannot download what the plan names', {
    before: async (stage) => {
      await announce(stage, 'w1', { checked: { id: '' } });
      await stage.start(cannotDownload);
    },
    play: async (stage) => await stage.wait(20),
  }),
  scene('a host keeps nothing to which it could go back', {
    policy: { onFailure: 'RollBack' },
    next: failingAfter('w2', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => {
      await stage.wait(30);
      for (let second = 0; second < 60; second++) {
        await announce(stage, 'w1', { kept: { version: 'v1.36.3+k0s.0', gone: 'DiskFull' } });
        await stage.wait(1);
      }
    },
    about: ['w1', 'w2'],
  }),
  scene('rolled back, and ended', {
    play: async (stage) => {
      await stage.wait(120);
      await stage.refit('rollback', ...BACK);
      await stage.wait(120);
    },
    about: ['c1', 'w1'],
  }),
  scene('rolled back, and a worker is in progress', {
    play: async (stage) => {
      await stage.wait(120);
      await stage.refit('rollback', ...BACK);
      await stage.wait(8);
    },
    about: ['c1', 'w1'],
  }),
  scene('rolled back, and a worker fails', {
    next: (step) =>
      step.name === 'w2' &&
      step.signal.command.version.endsWith('.0') &&
      step.status === 'Downloading'
        ? { status: 'FailedDownload', report: { reason: NOT_FOUND } }
        : asUsual(step),
    play: async (stage) => {
      await stage.wait(120);
      await stage.refit('rollback', ...BACK);
      await stage.wait(120);
    },
    about: ['w1', 'w2'],
  }),
  scene('a running plan is not rolled back', {
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('rollback', ...BACK);
    },
  }),
  scene('a waiting plan is told for a quarter of an hour', {
    policy: CHECKED,
    before: async (stage) => await setHealth(stage, 'bad'),
    play: async (stage) => await stage.wait(960),
  }),
  scene('a health check reads a kind that the cluster does not have', {
    policy: {
      health: {
        resources: [
          { name: 'mesh', apiVersion: 'mesh.example.com/v1', kind: 'Mesh', expression: 'true' },
        ],
      },
    },
    play: async (stage) => await stage.wait(60),
  }),
  scene('a worker fails because of a health check', {
    policy: { ...CHECKED, deadlines: { ready: '1m' } },
    before: async (stage) => await setHealth(stage, 'good'),
    play: async (stage) => {
      await stage.wait(20);
      await setHealth(stage, 'bad');
      await stage.wait(180);
    },
    about: ['w1', 'w2'],
  }),
  hookScene('a hook before each drain runs', hooked('BeforeDrain'), 'never'),
  hookScene('a hook before each drain fails', hooked('BeforeDrain'), 'Failed'),
  hookScene('a hook after each drain runs', hooked('AfterDrain'), 'never'),
  hookScene('a hook after each upgrade runs', hooked('AfterVerified'), 'never'),
  hookScene('a hook before the plan fails', hooked('BeforePlan'), 'Failed'),
  hookScene('a hook before the plan fails, and is retried', hooked('BeforePlan'), 'Failed', {
    play: async (stage) => {
      await stage.wait(30);
      await stage.refit('retry', 'autopilot/autopilot');
      await stage.wait(5);
    },
  }),
  hookScene(
    'a hook fails, and the policy ignores it',
    hooked('BeforeDrain', { onFailure: 'Ignore' }),
    'Failed',
  ),
  hookScene('a hook after the plan runs', hooked('AfterPlan'), 'never'),
  hookScene('a hook after the plan fails', hooked('AfterPlan'), 'Failed'),
  hookScene(
    'a worker drains itself, so a hook after its drain cannot run',
    hooked('AfterDrain'),
    'Complete',
    {
      before: drainItself,
    },
  ),
  scene('a worker drains itself', {
    before: drainItself,
    next: stuckAt('w1', 'Cordoning'),
    play: async (stage) => await stage.wait(60),
    about: ['w1'],
  }),
  scene('alerts are not silenced, because a Secret is missing', {
    policy: {
      silences: [
        { name: 'nodes', url: 'https://alertmanager.example.com', secretName: 'alertmanager' },
      ],
    },
    next: stuckAt('w1', 'Restart'),
    play: async (stage) => await stage.wait(60),
  }),
  scene('held, and released', {
    play: async (stage) => {
      await stage.refit('hold', 'w1', '--reason', 'disk is being replaced');
      await stage.wait(60);
      await stage.refit('unhold', 'w1');
      await stage.wait(5);
    },
    about: ['w1', 'w2'],
  }),
  scene('aborted while a drain is blocked', {
    before: createBudget,
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('abort', '--reason', 'budget blocks');
      await stage.wait(20);
    },
    about: ['w1', 'w2'],
  }),
  scene('paused while a drain is blocked', {
    before: createBudget,
    play: async (stage) => {
      await stage.wait(60);
      await stage.refit('pause');
      await stage.wait(20);
    },
    about: ['w1', 'w2'],
  }),
  scene('edited while a worker has failed', {
    policy: { failureBudget: 1 },
    next: failingAfter('w1', 'Downloading', 'FailedDownload', NOT_FOUND),
    play: async (stage) => {
      await stage.wait(28);
      await edit(stage, { version: 'v1.36.4+k0s.0' });
      await stage.wait(60);
    },
    about: ['w1', 'w2'],
  }),
  scene('applied again with the same id', {
    play: async (stage) => {
      await stage.wait(120);
      const { spec } = await stage.client.get(plans, 'autopilot');
      await stage.client.delete(plans, 'autopilot');
      await stage.wait(5);
      const metadata = { name: 'autopilot' };
      await stage.create(plans, {
        apiVersion: 'autopilot.k0sproject.io/v1beta2',
        kind: 'Plan',
        metadata,
        spec,
      });
      await stage.wait(20);
    },
    about: ['c1', 'w1'],
  }),
  scene('the nodes run the version already', {
    update: { ...UPDATE, version: 'v1.36.3+k0s.0', targets: { workers: ONE_BY_ONE } },
    play: async (stage) => await stage.wait(60),
    about: ['w1'],
  }),
];
