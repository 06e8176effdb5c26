/** Tests the agent on a real API server with only its documented rights. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reportReady } from '../../sandbox/cluster/objects.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import type { Node } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { type ControlNode, SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { NEW, OLD, Rig, type RigOptions } from '../agent/rig.ts';
import { Storm } from '../agent/storm.ts';
import { installKinds, kubeconfigFor, type User } from './control-plane.ts';

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
});
afterAll(() => admin.close());

async function startRig(name: string, user: User, options: Partial<RigOptions> = {}): Promise<Rig> {
  return await Rig.start({ name, admin, kubeconfig: await kubeconfigFor(user), ...options });
}

/**
 * The last number is the limit for writes. It includes the six statuses. A worker is also cordoned and uncordoned, and
 * each time the cluster changes a taint. A controller also reports its new version.
 */
test.each([
  [
    'a worker with its own node credentials',
    'worker',
    'agent-worker',
    { node: 'agent-worker' },
    10,
  ],
  [
    'a controller with its documented role',
    'controller',
    'agent-controller',
    { controlNode: 'agent-controller' },
    7,
  ],
] as const)('%s is updated with few writes', async (_name, role, name, user, most) => {
  await using rig = await startRig(name, user, { role });
  rig.startAgent();
  // Otherwise the count could include the writes with which the agent announces itself at its start.
  await rig.announced();
  await rig.until(async () =>
    expect(role === 'worker' || versionIn(await rig.object())).toBeTruthy(),
  );
  const before = await rig.object();
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
  if (role === 'controller')
    await rig.until(async () => expect(versionIn(await rig.object())).toBe(NEW));
  expect(rig.changes).toBeLessThanOrEqual(most);
  expect(await rig.host.version()).toBe(NEW);
  expect(await rig.installed()).toBe(rig.server.sha256('/new'));
  expect(await rig.report()).toMatchObject({ from: OLD });
  expect(othersPartOf(await rig.object())).toEqual(othersPartOf(before));
});

test('a build that crashes is rolled back', async () => {
  const options = { broken: 'crashes', flags: ['--restart-timeout', '3s'] } as const;
  await using rig = await startRig('agent-broken', { node: 'agent-broken' }, options);
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Failed');
  expect(await rig.report()).toMatchObject({ rolledBack: true });
  expect(await rig.installed()).toBe(rig.server.sha256('/old'));
  expect(await rig.host.version()).toBe(OLD);
});

/** The heartbeat of a kubelet that was healthy before the restart. */
const beatBefore = async (name: string): Promise<void> =>
  await reportReady(admin, name, OLD, rfc3339(Date.now() - 5_000));
const READY = expect.objectContaining({ type: 'Ready', status: 'True' }) as object;

test('a build whose service answers but whose kubelet does not is rolled back, although the node stays Ready', async () => {
  const flags = ['--ready-timeout', '3s'];
  await using rig = await startRig('agent-silent', { node: 'agent-silent' }, { flags });
  await beatBefore('agent-silent');
  const agent = rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  // The agent begins this step after the new version has answered.
  expect(agent.log.join('')).toContain('"step":"soak"');
  expect(rig.statuses).toEqual(['Downloading', 'Cordoning', 'ApplyingUpdate', 'Restart', 'Failed']);
  const reason = expect.stringContaining('no kubelet heartbeat within') as string;
  expect(await rig.report()).toMatchObject({ rolledBack: true, reason });
  expect(await rig.installed()).toBe(rig.server.sha256('/old'));
  expect(await rig.host.version()).toBe(OLD);
  const { spec, status }: Node = await rig.object();
  expect(status?.conditions).toContainEqual(READY);
  expect(spec?.unschedulable).toBeUndefined();
});

test('a late heartbeat of the old kubelet does not count for the new one', async () => {
  const flags = ['--ready-timeout', '3s'];
  const name = 'agent-last-word';
  await using rig = await startRig(name, { node: name }, { flags, restartDelayMs: 5_000 });
  await beatBefore(name);
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.until(async () => expect(await rig.journal()).toContain('"phase":"restarted"'));
  await reportReady(admin, name, OLD, rfc3339(Date.now()));
  expect(rig.host.starts).toBe(1);
  await rig.end();
  const reason = expect.stringContaining('no kubelet heartbeat within') as string;
  expect(await rig.report()).toMatchObject({ rolledBack: true, reason });
  expect(await rig.host.version()).toBe(OLD);
});

test('the agent waits for a kubelet that comes back late', async () => {
  await using rig = await startRig('agent-late', { node: 'agent-late' });
  await beatBefore('agent-late');
  const agent = rig.startAgent();
  await rig.send('/new', NEW);
  await rig.until(() => expect(agent.log.join('')).toContain('waiting for the kubelet'));
  expect(rig.statuses.at(-1)).toBe('Restart');
  await reportReady(admin, 'agent-late', NEW, rfc3339(Date.now()));
  await rig.end();
  expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
});

test('conflicts with a process that writes all the time cause no second download', async () => {
  const faults = [{ paceMs: 10 }];
  await using rig = await startRig(
    'agent-storm',
    { node: 'agent-storm' },
    { bytes: 64_000, faults },
  );
  rig.startAgent();
  await rig.send('/new', NEW);
  await using storm = new Storm(rig);
  await rig.end();
  expect(storm.writes).toBeGreaterThan(5);
  expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
  expect(rig.server.requests).toMatchObject([{ complete: true }]);
  expect(rig.host.starts).toBe(2);
});

test('the next agent continues the work of a killed one', async () => {
  await using rig = await startRig('agent-killed', { node: 'agent-killed' });
  rig.onStatus = (status) => {
    if (status === 'Restart') process.kill(rig.agent?.pid ?? 0, 'SIGKILL');
  };
  const first = rig.startAgent();
  await rig.send('/new', NEW);
  expect(await first.exited).toBeNull();
  rig.startAgent();
  await rig.end();
  expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
  expect(rig.server.requests).toMatchObject([{ complete: true }]);
  expect(rig.host.starts).toBe(2);
});

function versionIn(object: ControlNode): string | undefined {
  return object.status?.k0sVersion;
}

/**
 * Returns the part that neither the agent nor the controllers of the cluster change. The taints are left out, because
 * those controllers change them.
 */
function othersPartOf({ metadata, ...rest }: ControlNode & { spec?: object }): unknown {
  const { labels, annotations } = metadata;
  const theirs = annotations?.['example.com/theirs'];
  return {
    spec: { ...rest.spec, taints: undefined },
    addresses: rest.status?.addresses,
    labels,
    theirs,
  };
}
