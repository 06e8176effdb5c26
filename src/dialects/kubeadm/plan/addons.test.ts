/** Shows how the files of an addon are read, and which mistakes are refused, each with file and field. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { KubeClient } from '../../../kube/client.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { StatusError } from '../../../kube/status-error.ts';
import { systemClock } from '../../../util/clock.ts';
import { type AddonPlan, planAddons, readAddon } from './addons.ts';

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'refit-addon-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const named = (name: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name}, labels: { app: x } }\n`;

test('Refit sorts the objects of an addon folder by file, namespaces first, and labels each object', async () => {
  const files = {
    'b.yml': `---\n${named('c')}`,
    'a.yaml': `${named('a')}---\n${named('b')}`,
    'd.json': '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"d"}}',
    'e.yaml': 'apiVersion: v1\nkind: Namespace\nmetadata: { name: e }',
    'notes.txt': '{{',
  };
  const { objects } = await readAddon({ name: 'demo', path: folderWith(files) });
  expect(objects.map(({ metadata }) => metadata.name)).toEqual(['e', 'a', 'b', 'c', 'd']);
  expect(objects[1]?.metadata.labels).toEqual({ app: 'x', 'upgrade.refit.dev/addon': 'demo' });
});

test('a single file is an addon, too, read by the rules of kubectl', async () => {
  const path = join(
    folderWith({
      one: `${named('one')}data: { mode: 0755, on: yes, rule: '{{ $labels.pod }}', at: 22:00, mac: 52:54:00:12:34:56, other: 0o17 }\n`,
    }),
    'one',
  );
  const { objects } = await readAddon({ name: 'demo', path });
  expect(objects[0]).toMatchObject({
    data: {
      mode: 493,
      true: true,
      rule: '{{ $labels.pod }}',
      at: '22:00',
      mac: '52:54:00:12:34:56',
      other: 15,
    },
  });
});

test('a List counts as its items, as for kubectl', async () => {
  const list = (kind: string, items: readonly object[]): string =>
    JSON.stringify({ apiVersion: kind === 'List' ? 'v1' : 'apps/v1', kind, items });
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } };
  const files = {
    'a.json': list('List', [map, { ...map, kind: 'Secret' }]),
    'b.json': list('DeploymentList', [{ metadata: { name: 'b' } }]),
  };
  const { objects } = await readAddon({ name: 'demo', path: folderWith(files) });
  expect(objects.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)).toEqual([
    'v1 ConfigMap',
    'v1 Secret',
    'apps/v1 Deployment',
  ]);
  const wrong = folderWith({ 'c.json': list('List', [map, { ...map, metadata: {} }]) });
  await expect(readAddon({ name: 'demo', path: wrong })).rejects.toThrow(
    '/c.json: document 1: items[1]: metadata.name: found undefined, expected a text',
  );
  const text = folderWith({ 'd.yaml': 'apiVersion: v1\nkind: List\nitems: none\n' });
  await expect(readAddon({ name: 'demo', path: text })).rejects.toThrow(
    '/d.yaml: document 1: items: is the text "none", expected a list',
  );
});

test.each<[string, Record<string, string>, string]>([
  [
    'no name',
    { 'a.yaml': `${named('a')}---\napiVersion: v1\nkind: ConfigMap` },
    '/a.yaml: document 2: metadata.name: found undefined, expected a text',
  ],
  [
    'a number for a name',
    { 'a.yaml': named('1') },
    '/a.yaml: document 1: metadata.name: found 1, expected a text',
  ],
  [
    'what is no object',
    { 'a.yaml': '[1]' },
    '/a.yaml: document 1: apiVersion: found undefined, expected a text',
  ],
  ['no YAML', { 'a.yaml': 'a: [' }, '/a.yaml: is not YAML: '],
  ['nothing', { 'a.txt': named('a') }, ': found no object, expected YAML or JSON of Kubernetes'],
])('%s is refused', async (_, files, why) => {
  const path = folderWith(files);
  await expect(readAddon({ name: 'demo', path })).rejects.toThrow(`addon demo: ${path}${why}`);
});

test('a path that leads nowhere is refused', async () => {
  await expect(readAddon({ name: 'demo', path: '/nowhere' })).rejects.toThrow(
    'addon demo: /nowhere: cannot be read: ENOENT',
  );
});

const KINDS = {
  v1: ['ConfigMap', 'Secret'],
  'apps/v1': ['DaemonSet'],
  'apiextensions.k8s.io/v1': ['CustomResourceDefinition'],
  'new.example.com/v1': ['Thing'],
};
const object = (kind: string, more: object = {}, apiVersion = 'v1'): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name: 'a' },
  ...more,
});

interface Answers {
  readonly refusal?: StatusError;
  readonly record?: string;
  readonly discovery?: number;
  /** Collects the path of each discovery request. */
  readonly asked?: string[];
}

/** Plans an addon with an API server that answers each dry run with the existing object, or with the refusal. */
async function planned(
  objects: Readonly<Record<string, readonly KubeObject[]>>,
  { refusal, record, discovery = 200, asked = [] }: Answers = {},
): Promise<AddonPlan[]> {
  const find = (name: string): KubeObject =>
    Object.values(objects)
      .flat()
      .find(({ metadata }) => metadata.name === name) ?? object('');
  const away = { metadata: { name: 'w9' } };
  const client: Pick<KubeClient, 'raw' | 'get' | 'patch' | 'listAll'> = {
    raw: (path) => {
      asked.push(path);
      const kinds = Object.entries(KINDS).find(
        ([version]) => path.replace(/^.apis?./, '') === version,
      )?.[1];
      const resources = kinds?.map((kind) => ({
        name: `${kind.toLowerCase()}s`,
        kind,
        namespaced: true,
      }));
      return Promise.resolve({
        status: kinds ? discovery : 404,
        body: JSON.stringify({ resources }),
      });
    },
    get: (_, name) =>
      Promise.resolve(
        (name === 'refit-addons' ? { ...object(''), data: { demo: record } } : find(name)) as never,
      ),
    patch: (_, name) =>
      refusal && name === 'a' ? Promise.reject(refusal) : Promise.resolve(find(name) as never),
    listAll: () => Promise.resolve({ metadata: {}, items: [away] } as never),
  };
  const all = client as KubeClient;
  const tools = {
    client: all,
    writer: all,
    force: false,
    clock: systemClock,
    abort: new AbortController().signal,
  };
  return await planAddons(
    tools,
    Object.entries(objects).map(([name, own]) => ({ name, objects: own })),
  );
}

test('the kinds of an API version are asked for once to compare names, and once to try an addon out', async () => {
  const asked: string[] = [];
  const objects = ['a', 'b', 'c'].map((name) => object('ConfigMap', { metadata: { name } }));
  await planned({ demo: objects }, { asked });
  expect(asked).toEqual(['/api/v1', '/api/v1']);
});

test('an object in two addons is refused, whether its namespace is written out or not', async () => {
  const same = object('ConfigMap', { metadata: { name: 'a', namespace: 'default' } });
  await expect(planned({ demo: [object('ConfigMap')], other: [same] })).rejects.toThrow(
    'ConfigMap default/a is in addon demo and again in addon other: leave it in one place',
  );
});

test.each([
  [
    '["configmaps a -n default","configmaps b -n x"]',
    [
      'an earlier run applied an object that no file has now, and Refit does not delete it; to see it: kubectl get configmaps b -n x',
    ],
  ],
  [
    '[{"a":1}]',
    [
      'an earlier run applied an object that no file has now, and Refit does not delete it; to see it: kubectl get configmaps refit-addons -n kube-system (it is broken)',
    ],
  ],
  [
    '{',
    [
      'an earlier run applied an object that no file has now, and Refit does not delete it; to see it: kubectl get configmaps refit-addons -n kube-system (it is broken)',
    ],
  ],
])('after a record %s, people are told: %j', async (record, notes) => {
  expect(await planned({ other: [object('ConfigMap')], demo: [] }, { record })).toMatchObject([
    {},
    { notes: notes.map((note) => `demo: ${note}`) },
  ]);
});

test('only 404 means that a kind is not served yet', async () => {
  const [plan] = await planned({ demo: [object('Thing', {}, 'no.example.com/v1')] });
  expect(plan?.changes).toEqual(['created: Thing a']);
  const why = 'the API server does not say which kinds v1 has: it answered 503';
  await expect(planned({ demo: [object('ConfigMap')] }, { discovery: 503 })).rejects.toThrow(why);
});

test('no value of a Secret is told', async () => {
  const refusal = (message: string) => new StatusError({ kind: 'Status', code: 422, message });
  const [schema] = await planned(
    { demo: [object('Secret')] },
    { refusal: refusal('.data.p: expected string, got s3cret') },
  );
  const [value] = await planned(
    { demo: [object('Secret')] },
    { refusal: refusal('data[p]: Invalid value: "s3c\nret"') },
  );
  expect([schema?.problems, value?.problems]).toEqual([
    ['Secret a: .data.p: expected string'],
    ['Secret a: data[p]'],
  ]);
});

test('what its own definition may cure holds nothing back, but a conflict does', async () => {
  const definition = object(
    'CustomResourceDefinition',
    { metadata: { name: 'things.new.example.com' } },
    'apiextensions.k8s.io/v1',
  );
  const demo = [definition, object('Thing', {}, 'new.example.com/v1')];
  const refused = (reason: string) => ({
    refusal: new StatusError({ kind: 'Status', reason, message: 'no .spec.new' }),
  });
  expect(await planned({ demo }, refused('Invalid'))).toMatchObject([
    { problems: [], changes: ['Thing a: no .spec.new'] },
  ]);
  expect(await planned({ demo }, refused('Conflict'))).toMatchObject([
    { problems: ['Thing a: no .spec.new'] },
  ]);
});

test.each([
  ['waits for a Node that is Ready', 1, {}, ['not rolled out: DaemonSet a']],
  ['misses no Node that is not Ready', 2, {}, []],
  [
    'is not awaited if its pods are replaced by hand',
    0,
    { updateStrategy: { type: 'OnDelete' } },
    [],
  ],
])('a DaemonSet %s', async (_, numberAvailable, spec, changes) => {
  const status = { desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable };
  const [plan] = await planned({ demo: [object('DaemonSet', { spec, status }, 'apps/v1')] });
  expect(plan?.changes).toEqual(changes);
});
