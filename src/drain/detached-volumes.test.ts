/** Shows which attached volumes a drained node still has, what the log says about them, and how long Refit waits. */
import { expect, test } from 'vitest';
import { buildLog } from '../../test/support/builders/logs.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Pod, Resource, VolumeAttachment } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import { describeUnknownVolumes, leftVolumesOf, waitForDetach } from './volumes.ts';

const refused = (code: number, message: string): StatusError =>
  new StatusError({ kind: 'Status', code, reason: 'Refused', message });

/** An API server with attached volumes, and with PersistentVolumes that belong to claims. */
class VolumeApi {
  attachments: { readonly node: string; readonly volume?: string }[] = [];
  /** What each PersistentVolume contains. A request for any other PersistentVolume gets 404. */
  readonly stored: Record<string, object> = {};
  /** Each request, with its options. */
  readonly requests: (readonly [string, object])[] = [];

  get client(): KubeClient {
    const used = {
      listAll: async ({ plural }: Resource, options: object) => {
        this.requests.push([`list ${plural}`, options]);
        const items = this.attachments.map(
          ({ node, volume }): VolumeAttachment => ({
            metadata: { name: `csi-${volume}` },
            spec: {
              nodeName: node,
              attacher: 'a',
              source: volume === undefined ? {} : { persistentVolumeName: volume },
            },
          }),
        );
        return await Promise.resolve({ metadata: {}, items });
      },
      get: async ({ plural }: Resource, name: string, options: object) => {
        this.requests.push([`get ${plural} ${name}`, options]);
        const found = this.stored[name];
        if (found === undefined) throw refused(404, 'not found');
        return await Promise.resolve({ metadata: { name }, ...found });
      },
    };
    return used as unknown as KubeClient;
  }
}

const { signal: abort } = new AbortController();
const claimOf = (name: string, namespace = 'default') => ({
  spec: { claimRef: { name, namespace } },
});

function podWith(name: string, volumes?: NonNullable<NonNullable<Pod['spec']>['volumes']>): Pod {
  const pod = buildPod(name);
  return volumes === undefined ? pod : { ...pod, spec: { ...pod.spec, volumes } };
}

test('the attached volumes of the node are listed by their claims in alphabetical order', async () => {
  const api = new VolumeApi();
  Object.assign(api.stored, { 'pv-1': claimOf('z'), 'pv-2': claimOf('a'), 'pv-3': claimOf('b') });
  api.attachments = [
    { node: 'n1', volume: 'pv-1' },
    { node: 'n2', volume: 'pv-3' },
    { node: 'n1', volume: 'pv-2' },
    { node: 'n1' },
  ];
  const left = await leftVolumesOf(api.client)('n1', [], abort);
  expect(left).toEqual(['default/a', 'default/z']);
  expect(api.requests).toEqual([
    ['list volumeattachments', { resourceVersion: '0', abort }],
    ['get persistentvolumes pv-1', { abort }],
    ['get persistentvolumes pv-2', { abort }],
  ]);
});

test('each PersistentVolume is requested once, however often the volumes are listed', async () => {
  const api = new VolumeApi();
  api.stored['pv-1'] = claimOf('data');
  api.attachments = [{ node: 'n1', volume: 'pv-1' }];
  const leftVolumes = leftVolumesOf(api.client);
  await leftVolumes('n1', [], abort);
  expect(await leftVolumes('n1', [], abort)).toEqual(['default/data']);
  expect(api.requests.filter(([what]) => what.startsWith('get'))).toHaveLength(1);
});

test.each<[string, object | undefined]>([
  ['does not exist any more', undefined],
  ['has no spec', {}],
  ['belongs to no claim', { spec: {} }],
])('a PersistentVolume that %s is listed with its own name', async (_what, stored) => {
  const api = new VolumeApi();
  if (stored !== undefined) api.stored['pv-1'] = stored;
  api.attachments = [{ node: 'n1', volume: 'pv-1' }];
  expect(await leftVolumesOf(api.client)('n1', [], abort)).toEqual(['pv-1']);
});

test('the volumes that a pod of the node uses are left out, but not a volume of another kind with the same name', async () => {
  const api = new VolumeApi();
  Object.assign(api.stored, {
    'pv-1': claimOf('data'),
    'pv-2': claimOf('db-cache'),
    'pv-3': claimOf('db-scratch'),
  });
  api.attachments = ['pv-1', 'pv-2', 'pv-3'].map((volume) => ({ node: 'n1', volume }));
  const pods = [
    podWith('db', [
      { name: 'v', persistentVolumeClaim: { claimName: 'data' } },
      { name: 'cache', ephemeral: {} },
      { name: 'scratch', emptyDir: {} },
    ]),
    podWith('plain'),
    { metadata: { name: 'without-spec', namespace: 'default' } },
  ];
  expect(await leftVolumesOf(api.client)('n1', pods, abort)).toEqual(['default/db-scratch']);
});

test('people read which right is missing only if the API server refuses the request', () => {
  expect(describeUnknownVolumes(refused(500, 'it failed'))).toBe(
    'the volumes that are attached cannot be listed: it failed',
  );
  expect(describeUnknownVolumes(refused(403, 'no'))).toMatch(
    /: no; `refit install rights volumes` prints this right$/,
  );
});

function startWait(api: VolumeApi, timeoutMs: number) {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const log: string[] = [];
  const waits: string[] = [];
  const stop = new AbortController();
  const done = waitForDetach('n1', timeoutMs, {
    client: api.client,
    clock,
    random: () => 0.5,
    log: buildLog(log, 'debug'),
    abort: stop.signal,
    pods: () => [],
    onWait: (text) => waits.push(text),
  }).then(
    () => 'went on',
    (error: Error) => error.message,
  );
  return { clock, waits, stop, done, lines: () => log.map((line) => JSON.parse(line) as unknown) };
}

function withVolume(): VolumeApi {
  const api = new VolumeApi();
  api.stored['pv-1'] = claimOf('data');
  api.attachments = [{ node: 'n1', volume: 'pv-1' }];
  return api;
}

const REASON = 'waiting for 1 volume to detach: default/data';

test('the wait for a volume is logged once, and people read until when it lasts at most', async () => {
  const { clock, waits, stop, done, lines } = startWait(withVolume(), 60_000);
  await clock.advance(10_000);
  expect(lines()).toEqual([
    expect.objectContaining({ level: 'info', msg: 'draining', reason: REASON }),
  ]);
  expect(new Set(waits)).toEqual(
    new Set([`${REASON} (the drain goes on at 2026-01-01T00:01:00Z at the latest)`]),
  );
  stop.abort(new Error('the plan was aborted'));
  expect(await done).toBe('the plan was aborted');
});

test('if the volume stays attached until the end of the wait, a warning names the volume', async () => {
  const { clock, done, lines } = startWait(withVolume(), 5_000);
  await clock.advance(5_000);
  expect(await done).toBe('went on');
  expect(lines().at(-1)).toEqual(
    expect.objectContaining({
      level: 'warn',
      msg: 'the drain goes on although volumes may be attached',
      reason: REASON,
    }),
  );
});

test('if the volume is detached in time, there is no warning', async () => {
  const api = withVolume();
  const { clock, done, lines } = startWait(api, 5_000);
  await clock.advance(1_000);
  api.attachments = [];
  await clock.advance(1_000);
  expect(await done).toBe('went on');
  expect(lines()).toHaveLength(1);
});
