/** Tests that `refit validate` says each problem of a Plan of Rancher once, as the controller does. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { buildCattlePlan } from '../../test/support/builders/cattle-plans.ts';
import { validate } from '../../test/support/builders/validation.ts';
import { resolveLatest } from '../dialects/cattle/plan/latest.ts';

test('refit validate gives a Plan of Rancher the verdict of the controller', async () => {
  const plan = {
    apiVersion: 'upgrade.cattle.io/v1',
    kind: 'Plan',
    ...buildCattlePlan('p', {
      version: 'v1.36.3+k3s1',
      serviceAccountName: '..',
      upgrade: { image: 'rancher/k3s-upgrade' },
      drain: { timeout: '99999999h' },
    }),
  };
  const directory = await mkdtemp(join(tmpdir(), 'refit-validate-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const path = join(directory, 'plan.yaml');
  await writeFile(path, stringify(plan));
  const { problems } = resolveLatest(plan, undefined);
  expect(problems).toHaveLength(2);
  await expect(validate([path], () => undefined)).rejects.toMatchObject({
    problems: problems.map(({ message }) => `${path}: ${message}`),
  });
});
