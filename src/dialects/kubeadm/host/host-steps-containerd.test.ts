/** Shows when an upgraded containerd counts as running, and when the earlier containerd is restored. */
import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import {
  type Answer,
  hostStepsRig,
  node as nodeOf,
  rejecting,
  VERSION,
} from '../../../../test/support/kubeadm/host-steps-rig.ts';
import type { Condition, Node } from '../../../kube/resources.ts';
import { silentLogger } from '../../../util/log.ts';
import type { HostStepsParts } from './host-steps.ts';
import { upgradeContainerd } from './host-steps.ts';

const containerd = { version: 'v2.3.3', binaries: { containerd: { path: '/c' } } };
const nodeWith = (containerRuntimeVersion: string): Node => ({
  metadata: { name: 'w1' },
  status: {
    nodeInfo: { containerRuntimeVersion },
    conditions: [{ type: 'Ready', status: 'True' }],
  },
});

/** Returns how often the earlier containerd was restored, and the result of the upgrade. */
async function upgradeWith(
  node: () => Node,
  answer = { code: 0, stdout: 'containerd 2.3.2\n', stderr: '' },
): Promise<[number, string]> {
  let times = 0;
  const clock = new FakeClock(0, { skipsWaits: true });
  const on: HostStepsParts = {
    shells: {
      async run(_host, script) {
        const isBack = script.includes('nothing was replaced');
        if (isBack) times++;
        return await Promise.resolve(isBack ? answer : { code: 0, stdout: '', stderr: '' });
      },
    },
    host: { name: 'w1', role: 'worker' },
    rollout: 'r',
    version: 'v1.36.3',
    parts: ['kubelet'],
    members: async () => await Promise.resolve(new Map()),
    node: async () => await Promise.resolve().then(node),
    pods: async () => await Promise.resolve([]),
    abort: new AbortController().signal,
    clock,
    log: silentLogger,
  };
  const said = await upgradeContainerd(on, containerd).then(
    () => 'up',
    (error: unknown) => (error as Error).message,
  );
  return [times, said];
}

test.each([
  'containerd://2.3.3',
  'containerd://v2.3.3',
  'containerd://2.3.3~ds1',
  'containerd://2.3.3+ds1-1',
])('a Node that reports %s has the version', async (reported) => {
  expect(await upgradeWith(() => nodeWith(reported))).toEqual([0, 'up']);
});

test('where the Node reports another version to the end, the earlier one is put back', async () => {
  const [back, said] = await upgradeWith(() => nodeWith('containerd://2.3.2~ds1'));
  expect([back, said]).toEqual([
    1,
    expect.stringContaining('containerd 2.3.2 was put back and started'),
  ]);
});

test('why the earlier one cannot be put back, also where only standard error says it', async () => {
  const refused = { code: 1, stdout: '', stderr: 'a lecture\nsudo: a password is required\n' };
  const [, said] = await upgradeWith(() => nodeWith('containerd://2.3.2'), refused);
  expect(said).toContain(
    'the earlier one cannot be put back: a lecture; sudo: a password is required; containerd v2.3.3',
  );
});

test('where nobody can read the Node, a containerd that may be healthy stays', async () => {
  const away = (): Node => {
    throw new Error('connection refused');
  };
  expect(await upgradeWith(away)).toEqual([
    0,
    'containerd v2.3.3 stays: the Node cannot be read: connection refused; run the upgrade again',
  ]);
});

describe('containerd', () => {
  const upgraded = async (
    shell: (script: string, count: number) => Answer,
    nodes: () => Promise<Node>,
  ) => {
    const made = hostStepsRig(shell, { node: nodes });
    return { ...made, said: await made.outcome(upgradeContainerd(made.on, containerd)) };
  };
  const reports = (runtime: string, ready?: Condition['status']) => async () =>
    await Promise.resolve(nodeOf(VERSION, runtime, ready));
  const putsBack = (_script: string, count: number): Answer =>
    count === 0 ? {} : { stdout: 'containerd v1.7.29' };
  const FAILED = 'containerd v2.3.3 did not start: see journalctl -u containerd on the host';

  test.each(['containerd://2.3.3', 'containerd://v2.3.3', 'containerd://2.3.3+ours'])(
    'is there once the Node is Ready and reports %s',
    async (runtime) => {
      const { said, scripts } = await upgraded(putsBack, reports(runtime));
      expect([said, scripts.length]).toEqual(['', 1]);
    },
  );

  test.each<[string, Promise<Node>]>([
    ['reports an earlier one', reports('containerd://1.7.29')()],
    ['reports another runtime', reports('cri-o://2.3.3')()],
    ['reports it after something else', reports('x containerd://2.3.3')()],
    ['reports none', reports('')()],
    ['is not Ready', reports('containerd://2.3.3', 'False')()],
    ['says nothing of itself', Promise.resolve({ metadata: { name: 'cp1' } })],
  ])('is put back where the Node %s for two minutes', async (_name, found) => {
    const { said, scripts, clock } = await upgraded(putsBack, async () => await found);
    expect(said).toBe(`containerd v1.7.29 was put back and started; ${FAILED}`);
    expect(scripts[1]).toContain("NAMES='\\''containerd'\\''");
    expect(clock.monotonic()).toBe(120_000);
  });

  test('is found by each digit of its version', async () => {
    const { on, outcome } = hostStepsRig(() => ({}), { node: reports('containerd://12.34.56') });
    const other = { ...containerd, version: 'v12.34.56' };
    expect(await outcome(upgradeContainerd(on, other))).toBe('');
  });

  test.each<[string, Promise<Node>, string]>([
    ['what the Node reports', reports('cri-o://2.3.3')(), 'the Node reports cri-o://2.3.3'],
    ['that it reports nothing', Promise.resolve({ metadata: { name: 'a' } }), 'the Node reports '],
    ['that it is not Ready', reports('containerd://2.3.3', 'False')(), 'the Node is not Ready'],
  ])('that did not come up names as the cause %s', async (_name, found, expected) => {
    const { on, clock } = hostStepsRig(putsBack, { node: async () => await found });
    const error = await clock.runUntil(
      upgradeContainerd(on, containerd).catch((problem: unknown) => problem),
    );
    expect(error).toMatchObject({ code: 'REFIT_REFUSED', cause: { message: expected } });
  });

  test('is put back where its step fails', async () => {
    const { said } = await upgraded(
      (_script, count) => (count === 0 ? { code: 1 } : { stdout: 'containerd v1.7.29' }),
      reports('containerd://2.3.3'),
    );
    expect(said).toBe(`containerd v1.7.29 was put back and started; ${FAILED}`);
  });

  test('that cannot be put back is told', async () => {
    const { said } = await upgraded(
      (_script, count) => (count === 0 ? {} : { code: 1, stdout: 'no copy' }),
      reports(''),
    );
    expect(said).toBe(`the earlier one cannot be put back: no copy; ${FAILED}`);
  });

  test('stays where the Node cannot be read', async () => {
    const { said, scripts } = await upgraded(putsBack, rejecting);
    expect(said).toBe(
      'containerd v2.3.3 stays: the Node cannot be read: the API server is away; run the upgrade again',
    );
    expect(scripts).toHaveLength(1);
  });

  test('stays where Refit stops', async () => {
    const { on, ended, outcome, scripts } = hostStepsRig(() => {
      ended.abort(new Error('stopped'));
      return { code: 1 };
    });
    expect(await outcome(upgradeContainerd(on, containerd))).toBe('stopped');
    expect(scripts).toHaveLength(1);
  });
});
