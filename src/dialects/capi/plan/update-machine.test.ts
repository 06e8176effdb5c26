/** Proves UpdateMachine: idempotent, done only when it is true, one update after the other. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { startHttpsMirror } from '../../../../test/agent/https-mirror.ts';
import { startStubServer } from '../../../../test/faults/stub-server.ts';
import { buildBudget, buildPod } from '../../../../test/support/builders/pods.ts';
import { buildUpgradePolicy } from '../../../../test/support/builders/policies.ts';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import type { UpdateMachineResponse } from '../../../api/capi/hooks.ts';
import { machines } from '../../../api/capi/machine.ts';
import { upgradePolicies } from '../../../api/kinds.ts';
import { ABORT_ANNOTATION } from '../../../engine/model/controls.ts';
import { policyWithin } from '../../../engine/policy/rollout-policy.ts';
import {
  annotated,
  type Node,
  nodes,
  podDisruptionBudgets,
  pods,
} from '../../../kube/resources.ts';
import { encodePresence } from '../../../signal/agent-presence.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { AGENT_ANNOTATION } from '../../../signal/names.ts';
import { RECORD_ANNOTATION, UPDATE_ANNOTATION, updateOn } from './rollout.ts';
import { fetchText } from './update-machine.ts';

const underWay = (message: string): object => ({
  status: 'Success',
  message,
  retryAfterSeconds: 2,
});
/** Asked again later, since nothing can change soon. */
const held = (message: string): object => ({ status: 'Success', message, retryAfterSeconds: 20 });
const failed = (message: string): object => ({ status: 'Failure', message, retryAfterSeconds: 0 });
const DONE = { status: 'Success', retryAfterSeconds: 0 };

describe('an update from the first call to the last', () => {
  const scene = new MachineScene(['w1']);

  test('the request is on the Node before the first answer, once', async () => {
    expect(await scene.ask('w1')).toMatchObject(underWay('node w1 is about to start'));
    const update = updateOn(scene.node('w1'));
    expect(update).toMatchObject({
      machine: 'default/m-w1',
      version: 'v1.35.1',
      role: 'worker',
      platform: 'linux-amd64',
      url: 'https://example.com/v1.35.1/linux-amd64/k0s',
      sha256: 'ab'.repeat(32),
    });
    expect(await scene.ask('w1')).toMatchObject(underWay('w1 is about to be signalled'));
    expect(updateOn(scene.node('w1'))).toEqual(update);
    expect(scene.read).toEqual(['https://example.com/v1.35.1.sha256']);
  });

  test('the leader signals the Node, and every answer says where it is', async () => {
    await scene.lead('w1');
    expect(await scene.ask('w1')).toMatchObject(
      underWay('w1 is signalled; its agent has not answered yet'),
    );
    scene.report('w1', 'Downloading');
    const answer = await scene.ask('w1');
    expect(answer).toMatchObject(underWay('w1 is at Downloading'));
    await scene.lead('w1');
    await scene.clock.advance(60_000);
    expect(await scene.ask('w1')).toEqual(answer);
  });

  test('while nothing changes, a replica that follows the Nodes asks for the Machine alone', async () => {
    const before = scene.api.calls.length;
    for (const settings of [{}, { partial: 'deny' }])
      expect(await scene.ask('w1', 'v1.35.1', settings)).toMatchObject(
        underWay('w1 is at Downloading'),
      );
    expect(scene.api.calls.slice(before)).toEqual(['get machines/m-w1', 'get machines/m-w1']);
    expect(await scene.ask('w1', 'v1.35.1', { disableInPlaceUpdates: 'true' })).toMatchObject({
      status: 'Failure',
    });
    expect(await scene.ask('w1', 'v1.35.9')).toMatchObject({ status: 'Failure' });
  });

  test('done by the report of its agent is not done', async () => {
    scene.report('w1', 'Completed');
    expect((await scene.ask('w1')).retryAfterSeconds).toBe(2);
    await scene.lead('w1');
    expect(await scene.ask('w1')).toMatchObject(
      underWay('node w1 was updated, but its kubelet reports v1.35.0 instead of v1.35.1'),
    );
  });

  test('done, as often as it is asked', async () => {
    scene.kubelet('w1', 'v1.35.1');
    expect(await scene.ask('w1')).toMatchObject(DONE);
    const before = scene.api.calls.filter((call) => call.startsWith('replace'));
    expect(await scene.ask('w1')).toMatchObject(DONE);
    expect(scene.api.calls.filter((call) => call.startsWith('replace'))).toEqual(before);
  });

  test('the next version begins anew, and what its agent said of the last one does not count', async () => {
    scene.want('w1', 'v1.35.2');
    await scene.ask('w1', 'v1.35.2');
    await scene.lead('w1');
    expect(await scene.ask('w1', 'v1.35.2')).toMatchObject(
      underWay('w1 is signalled; its agent has not answered yet'),
    );
    expect(decodeSignal(scene.node('w1').metadata.annotations)?.command.version).toBe('v1.35.2');
  });
});

test('a kubelet that never reports the version ends the wait with a failure, and one that does at last with success', async () => {
  const scene = new MachineScene(['w1']);
  await scene.ask('w1');
  await scene.lead('w1');
  scene.report('w1', 'Completed');
  await scene.lead('w1');
  expect((await scene.ask('w1')).status).toBe('Success');
  await scene.clock.advance(10 * 60_000 + 1);
  expect(await scene.ask('w1')).toMatchObject(
    failed(
      'node w1 was updated more than 10 minutes ago, but its kubelet reports v1.35.0 instead of v1.35.1; check that spec.version names what the payload installs',
    ),
  );
  scene.kubelet('w1', 'v1.35.1');
  expect(await scene.ask('w1')).toMatchObject(DONE);
});

test('a release of k0s is done when its kubelet says what it calls itself', async () => {
  const scene = new MachineScene(['w1']);
  const release = 'v1.35.1+k0s.2';
  scene.want('w1', release);
  await scene.ask('w1', release);
  await scene.lead('w1');
  scene.report('w1', 'Completed');
  await scene.lead('w1');
  expect(await scene.ask('w1', release)).toMatchObject(
    underWay('node w1 was updated, but its kubelet reports v1.35.0 instead of v1.35.1+k0s'),
  );
  scene.kubelet('w1', 'v1.35.1+k0s');
  expect(await scene.ask('w1', release)).toMatchObject(DONE);
  // The kubelet of v1.35.1+k0s.3 says the same, so the next release is not done before its agent has said so.
  scene.want('w1', 'v1.35.1+k0s.3');
  expect(await scene.ask('w1', 'v1.35.1+k0s.3')).toMatchObject(
    underWay('node w1 is about to start'),
  );
});

test('another version while one is under way: that one is brought to its end first', async () => {
  const scene = new MachineScene(['w1']);
  await scene.ask('w1');
  await scene.lead('w1');
  scene.report('w1', 'Restart');
  scene.want('w1', 'v1.35.2');
  expect(await scene.ask('w1', 'v1.35.2')).toMatchObject(
    underWay('waiting for the update to v1.35.1: w1 is at Restart'),
  );
  expect(updateOn(scene.node('w1'))?.version).toBe('v1.35.1');
  scene.report('w1', 'Completed');
  await scene.lead('w1');
  expect(await scene.ask('w1', 'v1.35.2')).toMatchObject(underWay('node w1 is about to start'));
  expect(updateOn(scene.node('w1'))?.version).toBe('v1.35.2');
});

test('a failed update fails every call, until another version is wanted or the request is taken away', async () => {
  const scene = new MachineScene(['w1']);
  await scene.ask('w1');
  await scene.lead('w1');
  scene.report('w1', 'Failed');
  await scene.lead('w1');
  const why = "w1: Failed: see the node's log for the reason";
  expect(await scene.ask('w1')).toMatchObject(failed(why));
  expect(await scene.ask('w1')).toMatchObject(failed(why));
  scene.api.change(nodes, 'w1', (node) => withoutRequest(node));
  expect(await scene.ask('w1')).toMatchObject(underWay('node w1 is about to start'));
});

test('what was ordered of one update does not hold for the next', async () => {
  const scene = new MachineScene(['w1']);
  scene.api.change(nodes, 'w1', (node) => ({
    ...node,
    metadata: {
      ...node.metadata,
      annotations: {
        ...node.metadata.annotations,
        [ABORT_ANNOTATION]: 'not that one',
        mine: 'yes',
      },
    },
  }));
  await scene.ask('w1');
  expect(scene.node('w1').metadata.annotations).toMatchObject({ mine: 'yes' });
  expect(scene.node('w1').metadata.annotations).not.toHaveProperty(ABORT_ANNOTATION);
});

test('two calls at once ask for one update', async () => {
  const scene = new MachineScene(['w1']);
  const answers = await Promise.all([scene.ask('w1'), scene.ask('w1')]);
  expect(answers.map(({ message }) => message)).toEqual([
    'node w1 is about to start',
    'the Machine changed meanwhile',
  ]);
  expect(scene.api.calls.filter((call) => call === 'replace nodes/w1')).toHaveLength(1);
  const { uid } = updateOn(scene.node('w1')) ?? {};
  await scene.lead('w1');
  expect(updateOn(scene.node('w1'))?.uid).toBe(uid);
});

test('the kubelet writes its Node between look and request: the next call writes it', async () => {
  const scene = new MachineScene(['w1']);
  scene.api.before('replace nodes/w1', () => scene.kubelet('w1', 'v1.35.0'));
  expect(await scene.ask('w1')).toMatchObject(underWay('node w1 is about to start'));
  expect(updateOn(scene.node('w1'))).toBeUndefined();
  await scene.ask('w1');
  expect(updateOn(scene.node('w1'))).toBeDefined();
});

test('a Node that is there already needs nothing', async () => {
  const scene = new MachineScene(['w1']);
  scene.kubelet('w1', 'v1.35.1');
  expect(await scene.ask('w1')).toMatchObject(DONE);
  expect(updateOn(scene.node('w1'))).toBeUndefined();
});

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
    // Any kubelet could give its own Node the identity of the Machine.
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
    'a budget in the way of a %s, before it begins',
    async (role) => {
      const scene = withPod(role);
      scene.api.put(podDisruptionBudgets, budget);
      await scene.ask('m1');
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
    expect(await scene.ask('m1')).toMatchObject(underWay('m1 is being cordoned'));
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

describe('an agent that has vanished after the signal', () => {
  async function after(deadlineMs: number, waitMs: number): Promise<UpdateMachineResponse> {
    const scene = new MachineScene(['w1']);
    scene.policy = policyWithin(deadlineMs);
    await scene.ask('w1');
    for (let round = 0; round < 3; round++) {
      await scene.lead('w1');
      await scene.clock.advance(waitMs);
    }
    await scene.lead('w1');
    return await scene.ask('w1');
  }

  test('while somebody holds it up no time counts, and afterwards it begins anew', async () => {
    const scene = new MachineScene(['w1']);
    await scene.ask('w1');
    await scene.lead('w1');
    const policy = policyWithin(3_600_000);
    for (const more of [{ heldBy: 'Cluster default/prod' }, {}]) {
      for (let round = 0; round < 3; round++) {
        scene.policy = { ...policy, ...more };
        await scene.lead('w1');
        await scene.clock.advance('heldBy' in more ? 3_600_000 : 60_000);
      }
    }
    await scene.lead('w1');
    expect(await scene.ask('w1')).toMatchObject({ status: 'Success' });
    await scene.clock.advance(3_600_000);
    await scene.lead('w1');
    expect(await scene.ask('w1')).toMatchObject({ status: 'Failure' });
  });

  test('with a deadline the update fails', async () => {
    const late = failed('w1 did not report within its deadline');
    expect(await after(7 * 24 * 3_600_000, 3_600_000)).toMatchObject(late);
  });

  test('without one it waits for ever', async () => {
    const answer = await after(Number.POSITIVE_INFINITY, 365 * 24 * 3_600_000);
    expect(answer).toMatchObject({ status: 'Success', retryAfterSeconds: 2 });
  });
});

describe('an update that failed at its deadline, where stuck Machines are deleted after half an hour', () => {
  const late = 'w1 did not report within its deadline';
  const announced = failed(
    `${late}; its Machine is deleted once the node has said nothing new for 30 min`,
  );

  async function stuckScene(kind = 'MachineSet', code = 'DeadlineExceeded'): Promise<MachineScene> {
    const scene = new MachineScene(['w1']);
    const owner = {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind,
      name: 'owner',
      uid: 'o1',
      controller: true,
    };
    scene.api.change(machines, 'm-w1', (machine) => ({
      ...machine,
      metadata: { ...machine.metadata, ownerReferences: [owner] },
    }));
    await scene.ask('w1');
    await scene.lead('w1');
    endLate(scene, code);
    return scene;
  }

  /** As a leader records it that has watched all the time. */
  function endLate(scene: MachineScene, code = 'DeadlineExceeded'): void {
    scene.api.change(nodes, 'w1', (node) => {
      const since = new Date(scene.clock.now()).toISOString();
      const record = {
        uid: updateOn(node)?.uid,
        phase: 'failed',
        blocked: true,
        state: 'failed',
        since,
      };
      return annotated(node, {
        [RECORD_ANNOTATION]: JSON.stringify({ ...record, reason: { code, message: late } }),
      });
    });
  }

  function isThere(scene: MachineScene): boolean {
    return scene.api.calls.every((call) => !call.startsWith('delete'));
  }

  test('it is deleted when this process has seen nothing new for that long, and not before', async () => {
    const scene = await stuckScene();
    // A clock that was wrong when the leader recorded it does not count.
    for (const minutes of [0, 15, 14.9]) {
      await scene.clock.advance(minutes * 60_000);
      expect(await scene.ask('w1')).toMatchObject(announced);
    }
    expect(isThere(scene)).toBe(true);
    await scene.clock.advance(60_000);
    expect(await scene.ask('w1')).toMatchObject(failed(`${late}; its Machine was deleted`));
    expect(scene.api.calls.at(-1)).toBe('delete machines/m-w1');
  });

  test('so is one whose leader has ended its signal', async () => {
    const scene = await stuckScene();
    await scene.lead('w1');
    expect(decodeSignal(scene.node('w1').metadata.annotations)?.status?.status).toBe('Failed');
    expect(await scene.ask('w1')).toMatchObject(announced);
    await scene.clock.advance(30 * 60_000);
    expect(await scene.ask('w1')).toMatchObject(failed(`${late}; its Machine was deleted`));
  });

  test('the time begins anew with each report of the node, and with a new attempt', async () => {
    const scene = await stuckScene();
    await scene.ask('w1');
    await scene.clock.advance(29 * 60_000);
    scene.report('w1', 'Downloading');
    expect(await scene.ask('w1')).toMatchObject(announced);
    await scene.clock.advance(29 * 60_000);
    scene.api.change(nodes, 'w1', withoutRequest);
    await scene.lead('w1');
    await scene.ask('w1');
    await scene.lead('w1');
    endLate(scene);
    expect(await scene.ask('w1')).toMatchObject(announced);
    await scene.clock.advance(29 * 60_000);
    await scene.ask('w1');
    expect(isThere(scene)).toBe(true);
  });

  test.each([
    ['whose node reported its end', (scene: MachineScene) => scene.report('w1', 'Completed')],
    ['whose node reported its failure', (scene: MachineScene) => scene.report('w1', 'Failed')],
    ['whose kubelet reports the version', (scene: MachineScene) => scene.kubelet('w1', 'v1.35.1')],
  ])('one %s after all is not deleted', async (_what, happens) => {
    const scene = await stuckScene();
    happens(scene);
    for (const ms of [0, 60 * 60_000]) {
      await scene.clock.advance(ms);
      expect(await scene.ask('w1')).toMatchObject(failed(late));
    }
    expect(isThere(scene)).toBe(true);
  });

  test.each([
    ['that no MachineSet would replace', 'KubeadmControlPlane', 'DeadlineExceeded'],
    ['that failed for another reason', 'MachineSet', 'DrainTooLong'],
  ])('one %s is not deleted', async (_what, kind, code) => {
    const scene = await stuckScene(kind, code);
    for (const ms of [0, 60 * 60_000]) {
      await scene.clock.advance(ms);
      expect(await scene.ask('w1')).toMatchObject(failed(late));
    }
    expect(isThere(scene)).toBe(true);
  });

  test('one that somebody changes meanwhile is not deleted', async () => {
    const scene = await stuckScene();
    await scene.ask('w1');
    await scene.clock.advance(60 * 60_000);
    scene.api.before('delete', () => scene.want('w1', 'v1.35.2'));
    await expect(scene.ask('w1')).rejects.toThrow('Conflict');
    expect(scene.api.read(machines, 'm-w1').spec?.version).toBe('v1.35.2');
  });
});

function withoutRequest(node: Node): Node {
  const { [UPDATE_ANNOTATION]: _request, ...annotations } = node.metadata.annotations ?? {};
  return { ...node, metadata: { ...node.metadata, annotations } };
}

test('a kubelet whose version cannot be read: answer and Event say what was not checked', async () => {
  const scene = new MachineScene(['w1']);
  scene.kubelet('w1', 'fake');
  const unchecked = 'without a check of the version rules: w1: its version fake is unreadable';
  expect(await scene.ask('w1')).toMatchObject(underWay(`node w1 is about to start, ${unchecked}`));
  expect(scene.told).toEqual([`Warning VersionUnchecked: upgraded ${unchecked}`]);
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
