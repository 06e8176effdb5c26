/** Tests on a real control plane the sources of the version and the hash of Rancher's Plans: channels and Secrets. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { cattlePlans } from '../../src/api/kinds.ts';
import { secrets } from '../../src/kube/resources.ts';
import { secretReader } from '../support/builders/secret-reader.ts';
import { conditionOf, NAMESPACE, planOf } from './cattle-rig.ts';
import { CattleScene, PATIENCE } from './cattle-scene.ts';
import { apply as applyManifest, kubectlAs } from './control-plane.ts';

let scene: CattleScene;

let channel: Server;
const asked: string[] = [];
beforeAll(async () => {
  channel = createServer((request, response) => {
    const { 'x-suc-latest-version': latest = 'first', 'x-suc-cluster-id': cluster } =
      request.headers;
    asked.push(`${request.url} ${String(latest)} ${String(cluster)}`);
    const code = Number(request.url?.slice(1));
    if (code > 0) response.writeHead(code).end();
    else response.writeHead(302, { location: '/releases/v2.0.0%2Bchannel1' }).end();
  });
  await new Promise<void>((resolve) => channel.listen(0, '127.0.0.1', resolve));
  scene = await CattleScene.open({});
});
afterAll(async () => {
  await scene.close();
  channel.closeAllConnections();
  channel.close();
});

test('a channel gives the version by its redirect', async () => {
  const { port } = channel.address() as AddressInfo;
  const nobody = { nodeSelector: { matchLabels: { pool: 'nobody' } } };
  await scene.apply(planOf('channel', { ...nobody, channel: `http://127.0.0.1:${port}/stable` }));
  const resolved = await scene.until('channel', 'Complete', 'True', 'Complete');
  expect(conditionOf(resolved, 'LatestResolved')).toMatchObject({
    status: 'True',
    reason: 'Channel',
  });
  expect(resolved.status?.latestVersion).toBe('v2.0.0-channel1');
  const { stdout: cluster } = await kubectlAs('admin', [
    'get',
    'ns',
    'kube-system',
    '-o',
    'jsonpath={.metadata.uid}',
  ]);
  expect(asked).toEqual([`/stable first ${cluster}`]);
});

test.each([
  ['http', '404', /404/],
  ['http', '503', /503/],
  ['https', 'stable', /./],
])(
  'a Plan whose channel gives no version reports the reason: %s, %s',
  async (scheme, path, words) => {
    const { port } = channel.address() as AddressInfo;
    const name = `broken-${scheme}-${path}`;
    await scene.apply(planOf(name, { channel: `${scheme}://127.0.0.1:${port}/${path}` }));
    const failed = await scene.until(name, 'LatestResolved', 'False', 'Error');
    expect(conditionOf(failed, 'LatestResolved').message).toMatch(words);
    expect(conditionOf(failed, 'Complete').reason).toBe('NotReady');
    expect(failed.status?.latestVersion).toBeUndefined();
  },
);

test('a Plan with neither channel nor version reports an error', async () => {
  await scene.apply(planOf('neither', {}));
  const failed = await scene.until('neither', 'LatestResolved', 'False', 'Error');
  expect(conditionOf(failed, 'LatestResolved').message).toBe(
    'cannot resolve plan: missing channel and version',
  );
  expect([failed.status?.latestVersion, failed.status?.latestHash]).toEqual([undefined, undefined]);
});

test('a Secret that no role lets Refit read blocks only the Plan that uses it', async () => {
  const metadata = { name: 'unnamed', namespace: NAMESPACE };
  await scene.admin.create(secrets, { metadata });
  const pool = { nodeSelector: { matchLabels: { pool: 'nobody' } }, version: 'v1' };
  await scene.apply(planOf('unnamed', { ...pool, secrets: [{ name: 'unnamed', path: 'x' }] }));
  await scene.apply(planOf('beside', pool));
  const refused = await scene.until('unnamed', 'Validated', 'False', 'Error');
  expect(conditionOf(refused, 'Validated').message).toBe('secrets "unnamed" not found');
  await scene.until('beside', 'Complete', 'True', 'Complete');
  await scene.admin.delete(secrets, 'unnamed', { namespace: NAMESPACE });
});

test('the plan waits for a Secret of its hash, and takes a new version of it', async () => {
  await applyManifest(
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: secretReader(NAMESPACE, 'bionic') }),
  );
  const named = { secrets: [{ name: 'bionic', path: 'bionic' }], version: 'bionic' };
  await scene.apply(
    planOf('bionic', { nodeSelector: { matchLabels: { pool: 'nobody' } }, ...named }),
  );
  const refused = await scene.until('bionic', 'Validated', 'False', 'Error');
  expect(conditionOf(refused, 'Validated').message).toBe('secrets "bionic" not found');
  const secret = { metadata: { name: 'bionic', namespace: NAMESPACE }, data: { curl: 'Ny41OC4w' } };
  await scene.admin.create(secrets, secret);
  const done = await scene.until('bionic', 'Complete', 'True', 'Complete');
  const found = await scene.admin.get(secrets, 'bionic', { namespace: NAMESPACE });
  await scene.admin.replace(secrets, { ...found, data: { curl: 'Ny42OS4w' } });
  await vi.waitFor(async () => {
    const plan = await scene.admin.get(cattlePlans, 'bionic', { namespace: NAMESPACE });
    expect(plan.status?.latestHash).not.toBe(done.status?.latestHash);
  }, PATIENCE);
  await scene.admin.delete(secrets, 'bionic', { namespace: NAMESPACE });
  expect(done.status?.latestHash).toBe('1ac8a41bfd33d8a67c53f18cc8bd0d6b911340a696231125cc7d931a');
});
