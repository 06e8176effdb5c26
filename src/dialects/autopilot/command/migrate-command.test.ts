/**
 * Proves the report for a cluster that moves from k0s's own autopilot, with recorded worker profiles and leases of k0s.
 */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import { recordedBeside } from '../../../../test/support/recordings.ts';
import { plans } from '../../../api/autopilot/plan.ts';
import type { KubeClient } from '../../../kube/client.ts';
import {
  type KubeObject,
  leases,
  type Node,
  nodes,
  pathOf,
  type Resource,
} from '../../../kube/resources.ts';
import { StatusError } from '../../../kube/status-error.ts';
import { encodePresence } from '../../../signal/agent-presence.ts';
import { AGENT_ANNOTATION, type ControlNode, controlNodes } from '../../../signal/names.ts';
import { checkExitCode, checkLines, problemsOf, stepsOf } from './migrate-command.ts';
import { type MigrationFacts, readFacts } from './migration-facts.ts';

const recorded = (name: string): KubeObject[] => recordedBeside(name) as KubeObject[];

const OURS = {
  annotations: { [AGENT_ANNOTATION]: encodePresence({ version: '1.0.0', since: later(0) }) },
};
const controller = (name: string, k0sVersion: string, more: object = {}): ControlNode => {
  const object = buildControlNode(name, more);
  return { ...object, status: { ...object.status, k0sVersion } };
};
const worker = (name: string, kubeletVersion: string, more: object = {}): Node => {
  const object = buildNode(name, more);
  return { ...object, status: { ...object.status, nodeInfo: { kubeletVersion } } };
};

interface Scene {
  readonly controllers?: readonly ControlNode[];
  readonly workers?: readonly Node[];
  readonly profiles?: 'on' | 'off' | 'forbidden';
  readonly state?: string;
  readonly leader?: 'k0s' | 'refit';
  readonly server?: string;
  readonly leases?: readonly KubeObject[];
}

const LEASE = {
  metadata: { name: 'k0s-autopilot-controller' },
  spec: { holderIdentity: 'ab'.repeat(16), renewTime: later(0), leaseDurationSeconds: 60 },
};

async function factsOf(scene: Scene): Promise<MigrationFacts> {
  const {
    controllers = [controller('c1', 'v1.36.3+k0s.2')],
    workers = [worker('w1', 'v1.36.3+k0s')],
    profiles = 'on',
  } = scene;
  const refused = (code: number, reason: string) =>
    new StatusError({
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      code,
      reason,
      message: reason,
    });
  const lists = new Map<string, readonly KubeObject[]>([
    [pathOf(controlNodes), controllers],
    [pathOf(nodes), workers],
    [pathOf(leases), [...recorded('node-lease-autopilot-on'), ...(scene.leases ?? [])]],
  ]);
  const listAll = async (resource: Resource): Promise<unknown> => {
    if (resource.kind === 'ConfigMap' && profiles === 'forbidden') throw refused(403, 'Forbidden');
    const items =
      resource.kind === 'ConfigMap'
        ? recorded(`worker-config-autopilot-${profiles}`)
        : lists.get(pathOf(resource));
    return await Promise.resolve({ items: items ?? [], metadata: {} });
  };
  const get = async (resource: Resource): Promise<unknown> => {
    const spec =
      scene.leader === 'refit' ? { ...LEASE.spec, holderIdentity: 'host1_1' } : LEASE.spec;
    if (resource === leases) return await Promise.resolve({ ...LEASE, spec });
    if (resource !== plans || scene.state === undefined) throw refused(404, 'NotFound');
    return await Promise.resolve({
      metadata: { name: 'autopilot' },
      status: { state: scene.state },
    });
  };
  const client = { listAll, get } as unknown as KubeClient;
  const { signal: abort } = new AbortController();
  return await readFacts({ client, abort }, scene.server ?? 'https://10.0.0.1:6443', T0);
}

test('a cluster without k0s is not ready for a migration', async () => {
  const facts = await factsOf({ controllers: [], workers: [worker('w1', 'v1.36.3')] });
  const problem =
    'no node runs k0s, and there is no ControlNode: use the kubeconfig of the k0s cluster';
  expect(problemsOf(facts)).toContain(problem);
  expect(problemsOf(await factsOf({}))).not.toContain(problem);
});

test('a leader whose lease ended is told as such', async () => {
  const facts = await factsOf({});
  const leader = { state: 'silent', holder: 'host1', since: later(0) } as const;
  expect(checkLines({ ...facts, leader })).toContain(
    `leader: Refit (host1), which has not renewed its lease since ${later(0)}`,
  );
});

const check = async (scene: Scene): Promise<string> => checkLines(await factsOf(scene)).join('\n');

test('a cluster that has not begun: agents, the leader and the profiles are those of k0s', async () => {
  expect(await check({})).toBe(
    [
      'NODE  ROLE        K0S                           AGENT                                 NEXT',
      "c1    controller  v1.36.3+k0s.2                 unknown                               restart k0s with --disable-components=autopilot, start Refit's agent",
      "w1    worker      v1.36.3+k0s, build not known  k0s's own, seen 2026-11-20T17:54:17Z  when the controllers are done, restart k0s and start Refit's agent",
      `leader: k0s (${'ab'.repeat(16)})`,
      "worker profiles that leave k0s's own agent on: worker-config-default-1.36, worker-config-default-windows-1.36, worker-config-v1-1.36",
      'Nothing blocks the migration: see refit migrate k0s --plan.',
    ].join('\n'),
  );
});

test('the controller whose k0s leads is named by its own Lease', async () => {
  const own = (name: string, holderIdentity: string) => ({
    metadata: { name: `k0s-ctrl-${name}`, namespace: 'kube-node-lease' },
    spec: { holderIdentity },
  });
  const holder = 'ab'.repeat(16);
  const own3 = [own('c1', 'cd'.repeat(16)), own('c2', holder)];
  expect(await check({ leases: own3 })).toContain(`leader: k0s on c2 (${holder})`);
  expect(await check({ leases: own3, leader: 'refit' })).toContain('leader: Refit (host1_1)');
});

test('of a worker whose kubelet is not that of k0s, or says nothing, the version of k0s is not known', async () => {
  const silent = buildNode('w2');
  const workers = [worker('w1', 'v1.36.3'), { ...silent, status: {} }];
  const text = await check({ workers });
  expect(text).toMatch(/\nw1 +worker +not known +/);
  expect(text).toMatch(/\nw2 +worker +not known +/);
});

test('of a worker that an agent upgraded, the build is known if the kubelet runs that release', async () => {
  const upgraded = {
    annotations: {
      ...OURS.annotations,
      ...buildSignal({ status: 'Completed', timestamp: later(0) }),
    },
  };
  const text = await check({
    workers: [worker('w1', 'v1.36.3+k0s', upgraded), worker('w2', 'v1.36.4+k0s', upgraded)],
  });
  expect(text).toMatch(/\nw1 +worker +v1\.36\.3\+k0s\.2 +Refit/);
  expect(text).toMatch(/\nw2 +worker +v1\.36\.4\+k0s, build not known +Refit/);
});

test('one that is done', async () => {
  const text = await check({
    controllers: [controller('c1', 'v1.36.3+k0s.2', OURS)],
    workers: [worker('w1', 'v1.36.3+k0s', OURS)],
    profiles: 'off',
    leader: 'refit',
  });
  expect(text).toContain('w1    worker      v1.36.3+k0s, build not known  Refit 1.0.0  nothing\n');
  expect(text).toContain("worker profiles that leave k0s's own agent on: none\n");
  expect(text).toMatch(/\nDone: every node has the agent of Refit\.$/);
});

const AGENTS_EVERYWHERE: Scene = {
  controllers: [controller('c1', 'v1.36.3+k0s.2', OURS)],
  workers: [worker('w1', 'v1.36.3+k0s', OURS)],
};

test.each<[string, Scene, string]>([
  ['profiles that leave it on', { leader: 'refit' }, 'not done: worker-config-default-1.36'],
  ['the leader of k0s', { profiles: 'off' }, 'not done: no controller of Refit holds the Lease'],
  [
    'profiles that may not be read',
    { profiles: 'forbidden', leader: 'refit' },
    'not done: the worker profiles cannot be read',
  ],
])('Refit has an agent on every node, and it is not done: %s', async (_name, scene, words) => {
  const text = await check({ ...AGENTS_EVERYWHERE, ...scene });
  expect(text).toContain(`\n${words}`);
  expect(text).not.toContain('Done:');
});

test('a worker whose k0s runs its own agent beside that of Refit is not done', async () => {
  const aside = { version: '1.0.0', since: later(0), aside: true } as const;
  const annotations = { [AGENT_ANNOTATION]: encodePresence(aside) };
  const workers = [worker('w1', 'v1.36.3+k0s', { annotations })];
  const text = await check({ ...AGENTS_EVERYWHERE, workers, profiles: 'off', leader: 'refit' });
  expect(text).toContain("k0s's own (Refit 1.0.0 stands aside)  restart k0s, start Refit's agent");
  expect(text).not.toContain('Done:');
});

test.each<[string, Scene, number]>([
  ['the migration has not begun', {}, 0],
  ['a plan is under way', { state: 'SchedulableWait' }, 1],
  ['profiles leave the agent of k0s on', { ...AGENTS_EVERYWHERE, leader: 'refit' }, 1],
  ['k0s leads', { ...AGENTS_EVERYWHERE, profiles: 'off' }, 1],
  ['profiles may not be read', { ...AGENTS_EVERYWHERE, profiles: 'forbidden', leader: 'refit' }, 1],
  ['it is done', { ...AGENTS_EVERYWHERE, profiles: 'off', leader: 'refit' }, 0],
])('the exit code of the check: %s', async (_name, scene, code) => {
  expect(checkExitCode(await factsOf(scene))).toBe(code);
});

test('profiles of a release that no node runs any more do not count', async () => {
  const facts = await factsOf({
    controllers: [controller('c1', 'v1.37.0+k0s.0', OURS)],
    workers: [worker('w1', 'v1.37.0+k0s', OURS)],
  });
  expect(facts.profilesOn).toEqual([]);
});

test('workers wait for the profiles after the controllers', async () => {
  const scene = { controllers: [controller('c1', 'v1.36.3+k0s.2', OURS)] };
  expect(await check(scene)).toContain('wait for the worker profiles, then restart k0s');
  expect(stepsOf(await factsOf(scene)).join('\n')).toContain(
    "wait configmap -l k0s.k0sproject.io/stack=k0s-worker-config-1.36 --for=jsonpath='{.data.autopilotDisabled}'=true",
  );
});

test.each<[string, Scene, string]>([
  [
    'workers whose agent cannot be switched off',
    { workers: [worker('w1', 'v1.34.10+k0s')] },
    'w1: k0s before v1.35.1',
  ],
  ['a plan under way', { state: 'SchedulableWait' }, 'a Plan is under way'],
])('in the way: %s', async (_name, scene, words) => {
  expect(problemsOf(await factsOf(scene)).join()).toContain(words);
  expect(await check(scene)).toContain(`\nblocks the migration: ${words}`);
});

test.each(['v1.35.1+k0s', 'v1.35.1+k0s.0', 'v1.37.0+k0s'])('%s heeds the flag', async (version) => {
  expect(
    problemsOf(await factsOf({ workers: [worker('w1', version)], state: 'Completed' })),
  ).toEqual([]);
});

test('profiles that may not be read are unknown', async () => {
  expect(await check({ profiles: 'forbidden' })).toContain('unknown, no right to read them');
});

test('the steps: users first, controllers before workers, nothing twice, and the way back', async () => {
  const facts = await factsOf({
    controllers: [controller('c1', 'v1.36.3+k0s.2', OURS), controller('c2', 'v1.36.3+k0s.2')],
    workers: [worker('w1', 'v1.36.3+k0s')],
    server: 'https://lb.example.com:6443',
  });
  const text = stepsOf(facts).join('\n');
  expect(text).toContain(
    'for user in refit-controller refit-viewer refit-operator refit:controlnode:c1 refit:controlnode:c2; do',
  );
  expect(text).toContain("sed -i 's#server: .*#server: https://lb.example.com:6443#'");
  const steps = [...text.matchAll(/^\d\. (On \w\d|\w+)/gm)].map(([, first]) => first);
  expect(steps).toEqual(['Install', 'On', 'Start', 'On c2', 'Wait', 'On w1', 'Every']);
  expect(text).toContain('To go back: ');
  // A user who has only the command has no files of the repository.
  expect(text).not.toMatch(/\b(?:docs|deploy|examples)\//);
  expect(text).toContain('refit install kinds | kubectl apply -f -');
  expect(text).toContain('refit install rights k0s | kubectl apply -f -');
});

test('a kubeconfig that names one API server gives no address for all', async () => {
  expect(stepsOf(await factsOf({})).join('\n')).toContain('server: https://LOAD_BALANCER:6443');
});
