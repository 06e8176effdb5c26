/** Tests how `refit validate` checks a List. `kubectl get -o yaml` writes several objects as a List. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { buildCattlePlan } from '../../test/support/builders/cattle-plans.ts';
import { validate } from '../../test/support/builders/validation.ts';

const PLAN = buildCattlePlan('agent');
const SECRET = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'token' } };

async function fileWith(value: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'refit-validate-lists-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const path = join(folder, 'plans.yaml');
  await writeFile(path, stringify(value));
  return path;
}

test('each item of a List is judged', async () => {
  const path = await fileWith({ apiVersion: 'v1', kind: 'List', items: [SECRET, PLAN] });
  let text = '';
  await validate([path], (line) => {
    text += line;
  });
  expect(text).toContain(`${path}: items[0]: holds a Secret of v1, which is not checked\n`);
  expect(text).toContain(`${path}: items[1]: Plan `);
});

test('an item that is wrong is named with its place', async () => {
  const { apiVersion, kind, ...rest } = PLAN;
  const wrong = { ...rest, spec: { ...rest.spec, concurrency: 'one' } };
  const path = await fileWith({ apiVersion, kind: `${kind}List`, items: [rest, wrong] });
  await expect(validate([path], () => {})).rejects.toThrow(
    `${path}: items[1]: spec.concurrency: is the text "one", expected a whole number`,
  );
});

test.each<[unknown, string]>([
  [{ a: PLAN }, 'is an object, expected a list'],
  ['none', 'is the text "none", expected a list'],
])('a List whose items are %j is refused with a message that says so', async (items, words) => {
  const path = await fileWith({ apiVersion: 'v1', kind: 'List', items });
  await expect(validate([path], () => {})).rejects.toThrow(`${path}: items: ${words}`);
});

test('a List without items has nothing to check', async () => {
  const path = await fileWith({ apiVersion: 'v1', kind: 'List', items: null });
  await expect(validate([path], () => {})).rejects.toThrow(
    `${path}: is empty or has only comments, expected`,
  );
});
