/** Tests how `refit validate` checks names: misspelt fields, and invalid names of objects. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { buildCattlePlan } from '../../test/support/builders/cattle-plans.ts';
import { validate } from '../../test/support/builders/validation.ts';
import { RefitError } from '../util/errors.ts';

const MANIFEST = `version: v1.36.3
hosts: [{ name: c1, role: controlPlane }]
binaries: { kubeadm: { path: /opt/kubeadm }, kubelet: { path: /opt/kubelet } }
`;

let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-validate-names-'));
});
afterAll(async () => await rm(directory, { recursive: true }));

/** Returns the problems of a file with this text; fails if it has none. */
async function problemsOf(text: string): Promise<string> {
  const path = join(directory, 'file.yaml');
  await writeFile(path, text);
  const error = await validate([path], () => {}).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RefitError);
  return (error as RefitError).line;
}

test.each([
  [
    'the manifest of kubeadm',
    () => MANIFEST.replace('kubeadm:', 'kubeamd:'),
    'has no member kubeamd (did you mean kubeadm?)',
  ],
  [
    'a Plan of system-upgrade-controller',
    () => stringify({ ...buildCattlePlan('k3s'), spec: { upgrade: { imgae: 'a' } } }),
    'spec.upgrade: it has no member imgae (did you mean image?)',
  ],
])(
  'a misspelt field of %s is named with the field that it resembles',
  async (_name, text, message) => {
    expect(await problemsOf(text())).toContain(message);
  },
);

test.each([
  [
    'hooks',
    '{hooks: [{name: a, when: BeforePlan, webhook: {url: "https://a", secretName: "Bad Name"}}]}',
  ],
  [
    'hooks',
    '{hooks: [{name: a, when: BeforePlan, job: {namespace: "Bad Name", template: {spec: {containers: [{name: a, image: b}]}}}}]}',
  ],
  ['notify', '{notify: [{name: a, type: Slack, secretRef: {name: "Bad Name", key: url}}]}'],
  [
    'health.metrics',
    '{health: {metrics: [{name: a, url: "http://a", query: up, max: "1", secretName: "Bad Name"}]}}',
  ],
  ['plans', '{plans: [{dialect: cattle, namespace: "Bad Name"}]}'],
])('%s: a name that no object can have is refused', async (field, spec) => {
  const text = `apiVersion: upgrade.refit.dev/v1alpha1\nkind: UpgradePolicy\nmetadata: {name: a}\nspec: ${spec}\n`;
  const line = await problemsOf(text);
  expect(line).toContain(`spec.${field}[0].`);
  expect(line).toMatch(/[nN]ame.* must consist of lower-case letters, digits/s);
});

const NAMED = [
  ['UpgradePolicy', 'upgrade.refit.dev/v1alpha1', {}],
  ['UpdaterSet', 'upgrade.refit.dev/v1alpha1', { updaters: [{ name: 'refit', refit: true }] }],
  ['UpdateConfig', 'autopilot.k0sproject.io/v1beta2', {}],
  ['Plan', 'autopilot.k0sproject.io/v1beta2', { commands: [] }],
  ['Plan', 'upgrade.cattle.io/v1', buildCattlePlan('k3s').spec],
] as const;

test.each(NAMED)('a name that the API server refuses: %s of %s', async (kind, apiVersion, spec) => {
  const line = await problemsOf(stringify({ apiVersion, kind, metadata: { name: 'Pol_A' }, spec }));
  const wanted =
    'metadata.name: is the text "Pol_A", must consist of lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit';
  expect(line).toContain(wanted);
  expect(line.split('metadata.name')).toHaveLength(2);
});

test('a name that no namespace can have is refused as the namespace of an object', async () => {
  const plan = buildCattlePlan('k3s');
  const text = stringify({ ...plan, metadata: { name: 'k3s', namespace: 'My.Space' } });
  expect(await problemsOf(text)).toContain(
    'metadata.namespace: is the text "My.Space", must consist of lower-case letters, digits and hyphens, and begin and end with a letter or digit',
  );
});

test.each(['', null])('the namespace %j is as good as none, as for kubectl', async (namespace) => {
  const plan = { ...buildCattlePlan('k3s'), metadata: { name: 'k3s', namespace } };
  const text = stringify({ ...plan, spec: { upgrade: { imgae: 'a' } } });
  const line = await problemsOf(text);
  expect(line).toContain('imgae');
  expect(line).not.toContain('metadata');
});

test('a name that is too long for an object is refused', async () => {
  const text = stringify({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'a'.repeat(254) },
    spec: {},
  });
  expect(await problemsOf(text)).toContain('metadata.name: ');
  expect(await problemsOf(text)).toContain('253 characters');
});

test.each([
  ['constructor', ['"constructor"']],
  ['spec.upgrade,spec.nothing', ['"spec.nothing"']],
  ['spec.upgrade', []],
])('a digest over %s: a warning for each path that names no field', async (digest, paths) => {
  const plan = buildCattlePlan('p', { nodeSelector: {} });
  const annotations = { 'upgrade.cattle.io/digest': digest };
  const path = join(directory, 'file.yaml');
  await writeFile(path, stringify({ ...plan, metadata: { ...plan.metadata, annotations } }));
  let told = '';
  await validate([path], (text) => {
    told += text;
  });
  const found = [...told.matchAll(/digest\]: (\S+) names no field of the Plan/g)];
  expect(found.map(([, name]) => name)).toEqual(paths);
});

test('an object that a file has twice: a warning, because the API server keeps the last one', async () => {
  const plan = buildCattlePlan('p', { nodeSelector: { matchLabels: { a: 'b' } } });
  const path = join(directory, 'file.yaml');
  await writeFile(path, [plan, plan].map((each) => stringify(each)).join('---\n'));
  let told = '';
  await validate([path], (text) => {
    told += text;
  });
  const warnings = told.split('\n').filter((line) => line.includes('warning: the file has'));
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain('the file has Plan p twice: only the last one stays');
});

test.each([
  ['Pland', 'autopilot.k0sproject.io/v1beta2', 'a Plan of autopilot.k0sproject.io/v1beta2'],
  ['plan', 'upgrade.cattle.io/v1', 'a Plan of upgrade.cattle.io/v1'],
  ['UpgradePolcy', 'upgrade.refit.dev/v1alpha1', 'an UpgradePolicy of upgrade.refit.dev'],
])('a misspelt kind %s names the one that is meant', async (kind, apiVersion, meant) => {
  const wrong = stringify({ apiVersion, kind, metadata: { name: 'a' }, spec: {} });
  expect(await problemsOf(wrong)).toContain(`which is no kind: write ${meant}`);
});
