/** Shows when an upgraded containerd counts as up, and when the earlier one is put back. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import type { Node } from '../../../kube/resources.ts';
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

/** How often it was put back, and what the upgrade says. */
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
