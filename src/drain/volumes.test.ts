/** Shows for which volumes a drain waits, for how long, and what it reports in the meantime. */
import { afterEach, expect, test } from 'vitest';
import { drainRig } from '../../test/support/builders/drain-rig.ts';
import type { PodApi } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import type { Pod } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import { describeProgress } from './drain-node.ts';
import { drainPreviewer } from './drain-preview.ts';
import { DEFAULT_DRAIN } from './pods.ts';

const { drain, endAll } = drainRig();
afterEach(endAll);

const DETACH = { detachMs: 120_000 };
const on = (...claims: string[]) => claims.map((claim) => ({ node: 'n1', claim }));
const withVolumes = (pod: Pod, volumes: NonNullable<NonNullable<Pod['spec']>['volumes']>): Pod => ({
  ...pod,
  spec: { ...pod.spec, volumes },
});
const claimed = (claimName: string) => [{ name: 'v', persistentVolumeClaim: { claimName } }];

test('by default no volume is asked for', async () => {
  const rig = await drain([], {}, (api) => {
    api.attached = on('default/data');
  });
  expect(await rig.done).toBe('drained');
  expect(rig.api.reads).toEqual(['list pods spec.nodeName=n1']);
});

test('volumes are asked for after the last pod is gone, and the drain waits until they are detached', async () => {
  const rig = await drain([['db-0']], DETACH, (api) => {
    api.attached = [...on('default/b', 'default/a'), { node: 'n2', claim: 'default/c' }];
  });
  expect(rig.api.reads).not.toContain('list volumeattachments');
  rig.api.remove('default/db-0');
  await rig.clock.advance(0);
  expect(rig.progress.at(-1)).toEqual({
    left: 0,
    detaching: expect.stringMatching(
      /^waiting for 2 volumes to detach: default\/a, default\/b \(the drain goes on at .+Z at the latest\)$/,
    ) as unknown,
  });
  rig.api.attached = on('default/b');
  await rig.clock.advance(2_000);
  const said = rig.progress.at(-1);
  expect(said && describeProgress(said, 'n1')).toMatch(
    /^no pod is left on node n1; waiting for 1 volume to detach: default\/b \(/,
  );
  rig.api.attached = [{ node: 'n2', claim: 'default/c' }];
  await rig.clock.advance(2_000);
  expect(await rig.done).toBe('drained');
});

test.each<[string, (api: PodApi) => void]>([
  [
    'of a DaemonSet',
    (api) => {
      api.daemonSets.add('log');
      api.put(withVolumes(buildPod('log', { controller: 'DaemonSet/log' }), claimed('data')));
    },
  ],
  [
    'that has an ephemeral volume',
    (api) => {
      const pod = buildPod('d', { controller: 'DaemonSet/log' });
      api.daemonSets.add('log');
      api.put(withVolumes(pod, [{ name: 'ata', ephemeral: {} }]));
      api.attached = on('default/d-ata');
    },
  ],
])('the volume of a pod that stays on the node is left out: a pod %s', async (_what, prepare) => {
  const rig = await drain([], DETACH, (api) => {
    api.attached = on('default/data');
    prepare(api);
  });
  expect(await rig.done).toBe('drained');
});

test('the volume of a pod that has completed counts', async () => {
  const rig = await drain([], DETACH, (api) => {
    api.attached = on('default/data');
    api.put(withVolumes(buildPod('done', { phase: 'Succeeded' }), claimed('data')));
  });
  expect(rig.progress.at(-1)?.detaching).toContain('default/data');
});

test('after its time the drain goes on', async () => {
  const rig = await drain([], DETACH, (api) => {
    api.attached = on('default/data');
  });
  await rig.clock.advance(119_999);
  expect(rig.progress.at(-1)?.detaching).toContain('default/data');
  await rig.clock.advance(1);
  expect(await rig.done).toBe('drained');
});

const FORBIDDEN = new StatusError({
  kind: 'Status',
  code: 403,
  reason: 'Forbidden',
  message: 'volumeattachments is forbidden',
});

test('without the right it waits for its time, says so, and asks again', async () => {
  const rig = await drain([], DETACH, (api) => {
    api.attached = FORBIDDEN;
  });
  expect(rig.progress.at(-1)?.detaching).toMatch(
    /^the volumes that are attached cannot be listed: .*volumeattachments is forbidden.*; `refit install rights volumes` prints this right \(the drain goes on at /,
  );
  await rig.clock.advance(60_000);
  rig.api.attached = [];
  await rig.clock.advance(2_000);
  expect(await rig.done).toBe('drained');
});

test('an abort ends the wait', async () => {
  const rig = await drain([], DETACH, (api) => {
    api.attached = on('default/data');
  });
  rig.stop.abort(new Error('the plan was aborted'));
  expect(await rig.done).toContain('the plan was aborted');
});

test.each<[string, PodApi['attached'], object]>([
  ['attached', on('default/data'), { detaching: 'waiting for 1 volume to detach: default/data' }],
  ['detached', [], {}],
  ['unknown', FORBIDDEN, { detaching: expect.stringContaining('prints this right') as unknown }],
])(
  'who looks at the drain of another process sees volumes that are %s',
  async (_what, attached, seen) => {
    const { api, stop } = await drain([]);
    api.attached = attached;
    const options = { ...DEFAULT_DRAIN, ...DETACH };
    const progress = await drainPreviewer(api.client, stop.signal).during('n1', options, 0);
    expect(progress).toEqual({ left: 0, ...seen });
  },
);
