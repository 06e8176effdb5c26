/** Tests what blocks or refuses an update of a Machine, and how each call reports that. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { startHttpsMirror } from '../../../../test/agent/https-mirror.ts';
import { startStubServer } from '../../../../test/faults/stub-server.ts';
import { buildBudget, buildPod } from '../../../../test/support/builders/pods.ts';
import { buildUpgradePolicy } from '../../../../test/support/builders/policies.ts';
import { failed, underWay } from '../../../../test/support/capi/machine-answers.ts';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import { machines } from '../../../api/capi/machine.ts';
import { upgradePolicies } from '../../../api/kinds.ts';
import { annotated, nodes, podDisruptionBudgets, pods } from '../../../kube/resources.ts';
import { encodePresence } from '../../../signal/agent-presence.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { AGENT_ANNOTATION } from '../../../signal/names.ts';
import { updateOn } from './machine-update.ts';
import { fetchText } from './update-machine.ts';

/** Returns the answer that asks for another call in 20 seconds, because nothing can change soon. */
const held = (message: string): object => ({ status: 'Success', message, retryAfterSeconds: 20 });

test.each<[string, (scene: MachineScene) => void, string]>([
  [
    'the Machine is gone',
    ({ api }) => api.remove(machines, 'm-w1'),
    'Machine default/m-w1 does not exist',
  ],
  [
    'the Machine wants another version',
    (scene) => scene.want('w1', 'v1.36.0'),
    'Machine default/m-w1 has spec.version v1.36.0, but the call asks for v1.35.1',
  ],
  [
    'the Machine has no Node',
    // The Machine must name its Node, because any kubelet could give its own Node the identity of the Machine.
    ({ api }) => api.change(machines, 'm-w1', (machine) => ({ ...machine, status: {} })),
    'Machine default/m-w1 has no Node yet',
  ],
  [
    'the Node does not tell its platform',
    ({ api }) =>
      api.change(nodes, 'w1', (node) => ({ ...node, metadata: { ...node.metadata, labels: {} } })),
    'node w1 has no labels kubernetes.io/os and kubernetes.io/arch',
  ],
])('%s: a failure, and nothing is written', async (_name, change, message) => {
  const scene = new MachineScene(['w1']);
  change(scene);
  expect(await scene.ask('w1')).toMatchObject(failed(message));
  expect(scene.api.calls.filter((call) => call.startsWith('replace'))).toEqual([]);
});

test.each([
  [
    'another version than that of the Machine',
    'latest',
    {},
    'Machine default/m-w1 has spec.version v1.35.1, but the call asks for latest',
  ],
  [
    'switched off',
    'v1.35.1',
    { disableInPlaceUpdates: 'true' },
    'in-place updates are disabled by the setting disableInPlaceUpdates',
  ],
])('%s: a failure, and nothing is written', async (_name, version, settings, message) => {
  const scene = new MachineScene(['w1']);
  expect(await scene.ask('w1', version, settings)).toMatchObject(failed(message));
  expect(scene.api.calls.filter((call) => !call.startsWith('get'))).toEqual([]);
});

test('a checksum that is not found is named without the secrets of its URL', async () => {
  await using server = await startStubServer((_request, response) => response.writeHead(404).end());
  const { host } = new URL(server.config.server);
  const asked = fetchText(`http://me:secret@${host}/sums?sig=1`, AbortSignal.timeout(10_000));
  await expect(asked).rejects.toThrow(
    `cannot read http://***@${host}/sums?***: ${host} answered 404 Not Found`,
  );
  const authorization = `Basic ${Buffer.from('me:secret').toString('base64')}`;
  const named = { 'user-agent': 'refit-capi-extension', 'accept-encoding': 'identity' };
  expect(server.requests.map(({ headers }) => headers)).toEqual([
    expect.objectContaining({ authorization, ...named }),
  ]);
});

test('a checksum is not read from plain http after a redirect from https', async () => {
  await using plain = await startStubServer((_request, response) =>
    response.end(`${'a'.repeat(64)}  k0s`),
  );
  const location = plain.config.server;
  await using mirror = await startHttpsMirror((_request, response) =>
    response.writeHead(302, { location }).end(),
  );
  const script = `import { fetchText } from '${new URL('./update-machine.ts', import.meta.url).href}';
    const asked = fetchText('${mirror.server.config.server}', new AbortController().signal);
    process.stdout.write(await asked.catch(({ message }) => message));
    process.exit();`;
  const args = ['--no-warnings', '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...mirror.trust },
  });
  const [from, to] = [mirror, { server: plain }].map(({ server }) => `127.0.0.1:${server.port}`);
  expect(stdout).toMatch(
    new RegExp(`: a redirect of ${from} leads from https to plain http at ${to}$`),
  );
  expect([mirror.server.requests.length, plain.requests.length]).toEqual([1, 0]);
});

test('a checksum that is none stops it before anything is asked for', async () => {
  const scene = new MachineScene(['w1']);
  scene.checksum = '<html>';
  await expect(scene.ask('w1')).rejects.toThrow(
    'https://example.com/v1.35.1.sha256 does not start with a SHA-256; publish the output of sha256sum there',
  );
  expect(updateOn(scene.node('w1'))).toBeUndefined();
});

describe('what only the leader knows is looked up by whoever is asked', () => {
  const budget = buildBudget(
    'web',
    { minAvailable: 1 },
    { expectedPods: 1, desiredHealthy: 1, currentHealthy: 1 },
  );
  const withPod = (role: 'worker' | 'controller'): MachineScene => {
    const scene = new MachineScene(['m1'], role);
    scene.api.put(pods, buildPod('web', { node: 'm1', labels: { app: 'web' } }));
    return scene;
  };

  test.each(['worker', 'controller'] as const)(
    'a budget for which the policy waits in the way of a %s, before it begins',
    async (role) => {
      const scene = withPod(role);
      scene.api.put(podDisruptionBudgets, budget);
      await scene.ask('m1');
      expect((await scene.ask('m1')).message).not.toMatch(/cannot be drained/);
      const drain = { zeroDisruptionBudgets: 'Wait' } as const;
      scene.api.put(upgradePolicies, buildUpgradePolicy('calm', { drain }));
      const { message, retryAfterSeconds } = await scene.ask('m1');
      expect(message).toMatch(
        /^m1 cannot be drained: .*it wants 1 of its 1 pods healthy at all times/,
      );
      expect(retryAfterSeconds).toBe(20);
    },
  );

  test('how far the drain is, and that only while there is one', async () => {
    const scene = withPod('worker');
    await scene.ask('m1');
    await scene.lead('m1');
    scene.report('m1', 'Cordoning');
    expect(await scene.ask('m1')).toMatchObject(underWay('m1 waits for the leader to cordon it'));
    scene.api.change(nodes, 'm1', (node) => ({
      ...node,
      spec: { ...node.spec, unschedulable: true },
    }));
    expect(await scene.ask('m1')).toMatchObject(underWay('1 pod is left on node m1 (default/web)'));
    scene.api.put(podDisruptionBudgets, budget);
    expect(await scene.ask('m1')).toMatchObject({ retryAfterSeconds: 20 });
    scene.report('m1', 'ApplyingUpdate');
    expect(await scene.ask('m1')).toMatchObject(underWay('m1 is at ApplyingUpdate'));
  });

  test('that nobody leads', async () => {
    const scene = new MachineScene(['w1']);
    scene.idle = 'no leader';
    await scene.ask('w1');
    expect(await scene.ask('w1')).toMatchObject(held('w1 is about to be signalled; no leader'));
    scene.idle = undefined;
    expect(await scene.ask('w1')).toMatchObject(underWay('w1 is about to be signalled'));
  });

  test('what a policy says', async () => {
    const scene = new MachineScene(['w1']);
    scene.api.put(upgradePolicies, buildUpgradePolicy('calm', { paused: true }));
    await scene.ask('w1');
    expect(await scene.ask('w1')).toMatchObject(
      held('UpgradePolicy calm has spec.paused: nothing new starts'),
    );
  });
});

describe('Machines of the control plane', () => {
  test('every API server must be ready first', async () => {
    const scene = new MachineScene(['c1'], 'controller');
    scene.health = [{ name: 'c2', ready: false, detail: '/readyz says 500' }];
    await scene.ask('c1');
    await scene.lead('c1');
    expect(decodeSignal(scene.node('c1').metadata.annotations)).toBeUndefined();
    const down = 'the API server of c2 (/readyz says 500) is not ready';
    expect(await scene.ask('c1')).toMatchObject(held(down));
    scene.health = [{ name: 'c2', ready: true }];
    expect(await scene.ask('c1')).toMatchObject(underWay('c1 is about to be signalled'));
    await scene.lead('c1');
    expect(decodeSignal(scene.node('c1').metadata.annotations)?.command.version).toBe('v1.35.1');
  });

  test('two that are asked for at once are told to move one after the other', async () => {
    const scene = new MachineScene(['c1', 'c2'], 'controller');
    const isSignalled = (name: string): boolean =>
      decodeSignal(scene.node(name).metadata.annotations) !== undefined;
    for (const name of ['c1', 'c2']) await scene.ask(name);
    for (const name of ['c1', 'c2']) await scene.lead(name);
    expect([isSignalled('c1'), isSignalled('c2')]).toEqual([true, false]);
    scene.report('c1', 'Completed');
    for (const name of ['c1', 'c2']) await scene.lead(name);
    expect(isSignalled('c2')).toBe(true);
  });
});

test('a kubelet whose version cannot be read: answer and Event say what was not checked', async () => {
  const scene = new MachineScene(['w1']);
  scene.kubelet('w1', 'fake');
  const unchecked = 'the version rules were not checked: w1: its version fake is unreadable';
  expect(await scene.ask('w1')).toMatchObject(underWay(`node w1 is about to start; ${unchecked}`));
  expect(scene.told).toEqual([`Warning VersionUnchecked: starts; ${unchecked}`]);
  await scene.ask('w1');
  expect(scene.told).toHaveLength(1);
});

test('a host whose kubelet refuses cgroup v1: the update does not begin', async () => {
  const scene = new MachineScene(['w1']);
  const presence = { version: '1', since: '2026-11-22T08:00:00Z', cgroupV1: 'refused' } as const;
  scene.api.change(nodes, 'w1', (node) =>
    annotated(node, { [AGENT_ANNOTATION]: encodePresence(presence) }),
  );
  const { status, message } = await scene.ask('w1');
  expect([status, message]).toEqual([
    'Failure',
    expect.stringContaining(
      'node w1: the host has cgroup v1, which the kubelet of v1.35.1 refuses',
    ),
  ]);
  expect(updateOn(scene.node('w1'))).toBeUndefined();
});
