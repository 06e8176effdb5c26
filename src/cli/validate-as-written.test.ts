/** Tests that `refit validate` recognizes what a file is by its fields, and not by words in its comments. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { buildPlan } from '../../test/support/builders/plans.ts';
import { validate } from '../../test/support/builders/validation.ts';
import type { RefitError } from '../util/errors.ts';

const MANIFEST = `version: v1.36.3
hosts: [{ name: c1, role: controlPlane }]
binaries: { kubeadm: { path: /opt/kubeadm }, kubelet: { path: /opt/kubelet } }
`;

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-validate-'));
});
afterAll(async () => await rm(directory, { recursive: true }));

async function file(text: string): Promise<string> {
  const path = join(directory, 'plan.yaml');
  await writeFile(path, text);
  return path;
}

async function lineOf(path: string): Promise<string> {
  const error: unknown = await validate([path], () => undefined).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'REFIT_FILE', exitCode: 2 });
  return (error as RefitError).line;
}

test.each([
  ['a comment about apiVersion', `# apiVersion: none\n${MANIFEST}`],
  ['a comment as the first document', `# apiVersion: none, kind: none\n---\n${MANIFEST}---\n`],
  ['a comment behind a field', MANIFEST.replace('\n', ' # as apiVersion\n')],
])('a manifest of hosts with %s is a manifest', async (_what, text) => {
  const path = await file(text);
  const said: string[] = [];
  await validate([path], (line) => void said.push(line));
  expect(said).toEqual([`${path}: 1 host to upgrade to v1.36.3: the manifest is valid\n`]);
});

test('a Plan with a comment about hosts or KubeOne is a Plan', async () => {
  const path = await file(`# hosts: []\n# kind: KubeOneCluster\n${stringify(buildPlan({}))}---\n`);
  const said: string[] = [];
  await validate([path], (line) => void said.push(line));
  expect(said[0]).toContain('can be carried out');
});

test('an UpdateConfig with cron inside of periodic names the right field', async () => {
  const config = {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'UpdateConfig',
    metadata: { name: 'example' },
    spec: { upgradeStrategy: { type: 'periodic', periodic: { cron: '0 0 22 * * *' } } },
  };
  const line = await lineOf(await file(stringify(config)));
  expect(line).toContain(
    'spec.upgradeStrategy.periodic: it has no member cron; move it to spec.upgradeStrategy.cron, with type: cron',
  );
  expect(line).not.toContain('is not a time of day');
});

test('a path without a file is named with the error of the system', async () => {
  expect(await lineOf(join(directory, 'none.yaml'))).toContain(
    `cannot read ${directory}/none.yaml: ENOENT`,
  );
  expect(await lineOf('')).toContain("cannot read '': ENOENT");
});
