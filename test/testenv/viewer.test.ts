/**
 * Tests that the role refit-viewer of deploy/rbac.yaml is enough for `refit status`, for every set of kinds that a
 * cluster may have.
 */
import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import { plainOutput } from '../../src/cli/output.ts';
import { showStatus } from '../../src/cli/status/status-command.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
} from '../../src/kube/resources.ts';
import { describeProblem } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { WHOLE } from '../support/whole.ts';
import { apply, kubeconfigFor } from './control-plane.ts';

/** `refit status` does not read UpdateConfigs. */
const FILES = globSync('deploy/crds/*.yaml', { exclude: ['**/*updateconfigs.yaml'] }).toSorted(
  (a, b) => a.localeCompare(b),
);
const definitions = FILES.map((file) => readFileSync(file, 'utf8'));
const names = definitions.map((text) => (parse(text) as CustomResourceDefinition).metadata.name);

const MISSING = /`refit install controller` prints them/;
let admin: KubeClient;

beforeAll(async () => {
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  for (const name of names)
    await admin.delete(customResourceDefinitions, name).catch(() => undefined);
  const left = async (): Promise<string[]> =>
    (await admin.listAll(customResourceDefinitions)).items.map(({ metadata }) => metadata.name);
  await vi.waitFor(
    async () => expect((await left()).filter((name) => names.includes(name))).toEqual([]),
    {
      timeout: 60_000,
      interval: 250,
    },
  );
});

afterAll(async () => {
  await installDefinitions(admin, systemClock);
  admin.close();
});

/** Returns what `refit status` prints for the viewer, or the reason why it failed. */
async function status(): Promise<string> {
  let printed = '';
  const write = (text: string): void => {
    printed += text;
  };
  const flags = { kubeconfig: await kubeconfigFor('viewer'), output: 'text' as const };
  const output = { ...plainOutput, write };
  const parts = {
    modules: MODULES,
    clock: systemClock,
    output,
    abort: new AbortController().signal,
  };
  const failed = (error: unknown): string => describeProblem(error).line;
  return await showStatus(flags, parts).then(() => printed, failed);
}

/**
 * Adds or removes a definition, and waits until the API server serves it or no longer serves it. This happens some time
 * after the write.
 */
async function toggle(index: number, isThere: boolean): Promise<void> {
  const { metadata, spec } = parse(definitions[index] ?? '') as CustomResourceDefinition;
  if (isThere) await apply(definitions[index] ?? '');
  else await admin.delete(customResourceDefinitions, metadata.name);
  const path = `/apis/${spec.group}/${spec.versions[0]?.name}/${spec.names.plural}`;
  await vi.waitFor(async () => expect((await admin.raw(path, {})).status === 200).toBe(isThere), {
    timeout: 60_000,
    interval: 250,
  });
}

/** Returns the steps through every subset of the kinds, in the order of a Gray code. */
const everySubset = (): number[] =>
  Array.from({ length: 2 ** names.length - 1 }, (_, step) => Math.log2((step + 1) & -(step + 1)));

/**
 * Adds all kinds, then removes them in the same order. So for any two kinds, each kind exists once without the other
 * kind.
 */
const everyPair = (): number[] => [...names.keys(), ...names.keys()];

test('whichever kinds are there: something is shown, and nothing is denied', async () => {
  const changes = WHOLE ? everySubset() : everyPair();
  const present = names.map(() => false);
  const answers = new Map<string, string>();
  for (const index of changes) {
    present[index] = !present[index];
    await toggle(index, present[index]);
    answers.set(names.filter((_, i) => present[i]).join(' '), await status());
  }
  expect(answers.size).toBe(changes.length);
  const hasPlans = (kinds: string): boolean => kinds.includes('plans.');
  const shown = [...answers].filter(([kinds]) => hasPlans(kinds));
  const hidden = [...answers].filter(([kinds]) => !hasPlans(kinds));
  expect(shown.filter(([, text]) => !text.startsWith('There is no plan.'))).toEqual([]);
  // If the API server serves no kind of plan, `refit status` says what to install.
  expect(hidden.filter(([, text]) => !MISSING.test(text))).toEqual([]);
});
