/** Tests what `refit ready --helm-releases` finds in stored releases, which are written as Helm writes them. */
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { type ReadyWorld, readyContext } from '../../test/support/ready/world.ts';
import { checkApis } from './checks/apis.ts';

const OLD = 'apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: web\n';
const SERVED = 'apiVersion: "apps/v1"\nkind: Deployment\nmetadata:\n  name: web\n';
const FOREIGN = 'apiVersion: acme.example.com/v1\nkind: Gadget\n';
const CORE = 'apiVersion: v1\nkind: Service\n';
/** The text in the block looks like an object. */
const IN_TEXT = `apiVersion: v1\nkind: ConfigMap\ndata:\n  x: |\n    apiVersion: policy/v1beta1\n    kind: PodDisruptionBudget\n`;

const json = (...documents: string[]): Buffer =>
  Buffer.from(
    JSON.stringify({
      name: 'web',
      manifest: documents.map((each) => `---\n# Source: x\n${each}`).join(''),
    }),
  );
const stored = (...documents: string[]): string => gzipSync(json(...documents)).toString('base64');
const twice = (text: string): string => Buffer.from(text).toString('base64');

const release = (kind: 'Secret' | 'ConfigMap', text: string, labels: object = {}): object => ({
  apiVersion: 'v1',
  kind,
  metadata: {
    name: 'sh.helm.release.v1.web.v3',
    namespace: 'shop',
    labels: { owner: 'helm', status: 'deployed', name: 'web', version: '3', ...labels },
  },
  data: { release: kind === 'Secret' ? twice(text) : text },
});
const check = async (objects: readonly object[], more: Omit<ReadyWorld, 'objects'> = {}) =>
  await checkApis(readyContext({ objects, readsHelmReleases: true, ...more }));
const LOST = [
  {
    state: 'warning',
    object: 'release of Helm shop/web',
    message:
      'its stored manifest has PodDisruptionBudget of policy/v1beta1, which Kubernetes 1.37 does not serve, so `helm upgrade` of it fails there',
    cure: expect.any(String) as string,
  },
];
const NONE = [
  {
    state: 'ok',
    message: 'no object, no request, and no stored release of Helm uses a removed API of v1.37.0',
  },
];

test.each<[string, object]>([
  ['a Secret', release('Secret', stored(SERVED, OLD))],
  ['a ConfigMap', release('ConfigMap', stored(SERVED, OLD))],
  ['a Secret without compression', release('Secret', json(OLD, SERVED).toString('base64'))],
])('a removed API in a release in %s is found', async (_title, object) => {
  expect(await check([object])).toEqual(LOST);
});

test.each<[string, object]>([
  ['with served and foreign APIs', release('Secret', stored(SERVED, FOREIGN, CORE, IN_TEXT))],
  ['that was replaced', release('Secret', stored(OLD), { status: 'superseded' })],
  ['of another product', release('Secret', stored(OLD), { owner: 'acme' })],
])('a release %s is no finding', async (_title, object) => {
  expect(await check([object])).toEqual(NONE);
});

test('stored releases are not read without the flag, and the sentence does not claim it', async () => {
  const objects = [release('Secret', stored(OLD))];
  expect(await check(objects, { readsHelmReleases: false })).toEqual([
    { state: 'ok', message: 'no object, and no request uses a removed API of v1.37.0' },
  ]);
});

test.each<[string, string]>([
  ['is no gzip', 'H4sIxxxx'],
  ['is no JSON', gzipSync('nothing').toString('base64')],
  ['has no manifest', gzipSync('{}').toString('base64')],
  ['is larger than any manifest', gzipSync(Buffer.alloc(65 * 1024 * 1024)).toString('base64')],
])('a release that %s is a question without an answer', async (_title, text) => {
  expect(await check([release('ConfigMap', text)])).toEqual([
    {
      state: 'unknown',
      object: 'release of Helm shop/web',
      message: '1 stored release cannot be read',
    },
  ]);
});

test('a store of releases that the user may not read is a question without an answer', async () => {
  const objects = [release('ConfigMap', stored(OLD))];
  expect(await check(objects, { forbidden: ['Secret'] })).toEqual([
    { state: 'unknown', message: 'the stored releases of Helm: you may not read secrets' },
    ...LOST,
  ]);
});
