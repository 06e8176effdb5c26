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

const packed = (text: string | Buffer): string => gzipSync(text).toString('base64');
const ODD_PART =
  ' completely: a part of its manifest is written in a way that Refit does not understand';
const TOO_LARGE = ': it has more than 8 mebibytes once it is unpacked';

test.each<[string, string, string]>([
  ['is no gzip', 'H4sIxxxx', ''],
  ['is no JSON', packed('nothing'), ''],
  ['does not end', packed('{"manifest":"","x":[{},'), ''],
  ['has no manifest', packed('{}'), ''],
  ['has a list as its manifest', packed('{"manifest":["---"]}'), ''],
  ['is larger than any release', packed(Buffer.alloc(9 * 1024 * 1024)), TOO_LARGE],
  ['has text behind three dashes', packed('{"manifest":"--- {a: b}\\n"}'), ODD_PART],
  ['has more lines than any release', packed(json('\n'.repeat(300_000))), ODD_PART],
])('a release that %s is a question without an answer', async (_title, text, why) => {
  expect(await check([release('ConfigMap', text)])).toEqual([
    {
      state: 'unknown',
      object: 'release of Helm shop/web',
      message: `1 stored release cannot be read${why}`,
    },
  ]);
});

test.each<[string, string]>([
  ['has neither a version nor a kind', 'metadata:\n  name: web\n'],
  ['has a kind and no version', 'kind: PodDisruptionBudget\n'],
  ['has two kinds', `${SERVED}kind: Service\n`],
  ['has the kind on the next line', 'apiVersion: v1\nkind:\n  Service\n'],
  ['has a kind by reference', 'apiVersion: v1\nkind: *kind\n'],
  ['has braces without quotes', '{apiVersion: v1, kind: Service}\n'],
  ['has a number as its kind', '{"apiVersion": "v1", "kind": 5}\n'],
  ['has a second value', '{"apiVersion": "v1", "kind": "Service"} {}\n'],
  ['has items without quotes', 'apiVersion: v1\nkind: List\nitems: [{kind: Service}]\n'],
  ['has an item without anything', 'apiVersion: v1\nkind: List\nitems:\n- metadata: {}\n'],
  ['has an item without a kind', 'apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n'],
  ['begins further to the right', '  apiVersion: v1\nkind: Service\n'],
])('a document that %s is told, and hides no removed API in another', async (_title, document) => {
  expect(await check([release('Secret', stored(document, OLD))])).toEqual([
    {
      state: 'unknown',
      object: 'release of Helm shop/web',
      message: `1 stored release cannot be read${ODD_PART}`,
    },
    ...LOST,
  ]);
});

const asJson = (value: object): string => JSON.stringify(value);
const OLD_OBJECT = { kind: 'PodDisruptionBudget', apiVersion: 'policy/v1beta1' };
const SERVED_OBJECT = { kind: 'Deployment', apiVersion: 'apps/v1', x: ['"}', '\\', { a: [] }] };
const listOf = (items: string): string => `apiVersion: v1\nkind: List\n${items}`;

test.each<[string, string]>([
  ['as JSON', asJson(OLD_OBJECT)],
  ['as JSON on several lines', JSON.stringify(OLD_OBJECT, null, 2)],
  ['with keys in quotes', `"apiVersion": 'policy/v1beta1'\n'kind' : PodDisruptionBudget # x\n`],
  ['with line ends of Windows', OLD.replaceAll('\n', '\r\n')],
  ['further to the right', OLD.replaceAll(/^/gm, '  ')],
  ['in a list', listOf(`items:\n- ${OLD.trim().replaceAll('\n', '\n  ')}\n`)],
  [
    'in a list that is indented',
    listOf(
      `items:\n  # x\n  - kind: Service\n    apiVersion: v1\n\n  -\n${OLD.replaceAll(/^/gm, '    ')}`,
    ),
  ],
  ['in a list with JSON', listOf(`items:\n- ${asJson(SERVED_OBJECT)}\n- ${asJson(OLD_OBJECT)}\n`)],
  ['in a JSON list in YAML', listOf(`items: [\n${asJson(OLD_OBJECT)}\n]\n`)],
  [
    'in a list as JSON',
    asJson({ apiVersion: 'v1', kind: 'List', items: [SERVED_OBJECT, OLD_OBJECT] }),
  ],
  [
    'in a list in a list',
    asJson({
      apiVersion: 'v1',
      kind: 'List',
      items: [{ apiVersion: 'v1', kind: 'List', items: [OLD_OBJECT] }],
    }),
  ],
])('a removed API that is written %s is found', async (_title, document) => {
  expect(await check([release('Secret', stored(SERVED, document))])).toEqual(LOST);
});

const RBAC = 'rbac.authorization.k8s.io/v1';
test.each<[string, string]>([
  [
    'a list of a served kind',
    `apiVersion: ${RBAC}\nkind: RoleBindingList\nitems:\n- metadata:\n    name: web\n`,
  ],
  ['a list of a served kind as JSON', asJson({ apiVersion: RBAC, kind: 'RoleList', items: [] })],
  ['a list without items', asJson({ apiVersion: RBAC, kind: 'List', items: null })],
  ['only comments', '# apiVersion: policy/v1beta1\n# kind: PodDisruptionBudget\n\n'],
])('a release with %s is no finding', async (_title, document) => {
  expect(await check([release('Secret', stored(document))])).toEqual(NONE);
});

test('a release without any object, whose manifest Helm leaves out, is no finding', async () => {
  expect(await check([release('Secret', packed('{"name":"web","chart":{}}'))])).toEqual(NONE);
});

test.each<[string, string]>([
  ['extensions/v1beta1', 'Ingress'],
  ['settings.k8s.io/v1alpha1', 'PodPreset'],
  ['policy/v1beta1', 'PodSecurityPolicyList'],
  ['policy/v1beta1', 'List'],
])(
  'a release with %s, which Kubernetes served long ago, names the kind %s',
  async (version, kind) => {
    const text = stored(`apiVersion: ${version}\nkind: ${kind}\n`);
    expect(await check([release('Secret', text)])).toEqual([
      expect.objectContaining({
        state: 'warning',
        message: expect.stringContaining(`has ${kind} of ${version}, which`) as string,
      }),
    ]);
  },
);

const madeUp = (count: number): string =>
  stored(...Array.from({ length: count }, (_, at) => `apiVersion: apps/v9\nkind: Kind${at}\n`));

test('releases with many removed APIs name some of them, and count the others', async () => {
  const found = await check([release('Secret', madeUp(40))]);
  expect(found).toHaveLength(31);
  expect(found.at(-1)).toEqual({
    ...LOST[0],
    message: expect.stringContaining('has 10 more APIs, which Kubernetes 1.37') as string,
  });
});

test('a release with more kinds than Kubernetes has is not read to its end', async () => {
  const found = await check([release('Secret', madeUp(2_000))]);
  expect(found).toHaveLength(32);
  expect(found).toContainEqual({
    state: 'unknown',
    object: 'release of Helm shop/web',
    message:
      '1 stored release cannot be read to the end: its manifest has more than 500 kinds of Kubernetes',
  });
  expect(found.at(-1)?.message).toContain('470 more APIs');
});

const revision = (version: number, status: string, document: string): object =>
  release('Secret', stored(document), { version: String(version), status });

test.each<[string, object[], object[]]>([
  ['the failed one, if nothing was ever deployed', [revision(1, 'failed', OLD)], LOST],
  [
    'the newest failed one, if nothing is deployed any more',
    [revision(9, 'failed', SERVED), revision(10, 'failed', OLD)],
    LOST,
  ],
  [
    'the deployed one before a failed one',
    [revision(1, 'deployed', SERVED), revision(2, 'failed', OLD)],
    NONE,
  ],
  [
    'the newest of several deployed ones',
    [revision(9, 'deployed', OLD), revision(10, 'deployed', SERVED)],
    NONE,
  ],
  [
    'the failed one before one that is pending',
    [revision(1, 'failed', OLD), revision(2, 'pending-upgrade', SERVED)],
    LOST,
  ],
  ['none that is pending', [revision(1, 'pending-install', OLD)], NONE],
  [
    'none before one that was uninstalled',
    [revision(1, 'failed', OLD), revision(2, 'uninstalled', OLD)],
    NONE,
  ],
])('of the revisions of a release, Helm takes %s', async (_title, objects, found) => {
  expect(await check(objects)).toEqual(found);
});

test('a store of releases that the user may not read is a question without an answer', async () => {
  const objects = [release('ConfigMap', stored(OLD))];
  expect(await check(objects, { forbidden: ['Secret'] })).toEqual([
    { state: 'unknown', message: 'the stored releases of Helm: you may not read secrets' },
    ...LOST,
  ]);
});
