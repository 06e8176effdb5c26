/** Shows when an upgraded containerd counts as up, and when the earlier one is put back. */
import { expect, test } from 'vitest';
import { jumpingClock } from '../../test/builders/jumping-clock.ts';
import type { Node } from '../kube/resources.ts';
import { silentLogger } from '../util/log.ts';
import { upgradeContainerd } from './containerd.ts';
import type { HostStepsParts } from './host-steps.ts';

const containerd = { version: 'v2.3.3', binaries: { containerd: { path: '/c' } } };
const nodeWith = (containerRuntimeVersion: string): Node => ({
  metadata: { name: 'w1' },
  status: { nodeInfo: { containerRuntimeVersion }, conditions: [{ type: 'Ready', status: 'True' }] },
});

/** How often it was put back, and what the upgrade says. */
async function upgradeWith(node: () => Node): Promise<[number, string]> {
  let times = 0;
  const clock = jumpingClock();
  const on: HostStepsParts = {
    shells: {
      async run(_host, script) {
        if (script.includes('nothing was replaced')) times++;
        return await Promise.resolve({ code: 0, stdout: 'containerd 2.3.2\n', stderr: '' });
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

test.each(['containerd://2.3.3', 'containerd://v2.3.3', 'containerd://2.3.3~ds1', 'containerd://2.3.3+ds1-1'])(
  'a Node that reports %s has the version',
  async (reported) => {
    expect(await upgradeWith(() => nodeWith(reported))).toEqual([0, 'up']);
  },
);

test('where the Node reports another version to the end, the earlier one is put back', async () => {
  const [back, said] = await upgradeWith(() => nodeWith('containerd://2.3.2~ds1'));
  expect([back, said]).toEqual([1, expect.stringContaining('containerd 2.3.2 was put back and started')]);
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
