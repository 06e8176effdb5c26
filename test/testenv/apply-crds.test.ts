/** Tests `refit controller --apply-crds` on the real API server: what it applies, what it leaves as it is, and what it needs. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import { APPLIED_BY_ANNOTATION, applyDefinitions } from '../../src/install/apply-definitions.ts';
import { kindsOfK0s, objectsIn } from '../../src/install/manifests.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
} from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { Logger } from '../../src/util/log.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { RefitProcess } from './refit-process.ts';

const RIGHTS = 'deploy/rbac-crds.yaml';
const PLANS = 'plans.autopilot.k0sproject.io';
const NAMES = objectsIn(kindsOfK0s())
  .filter(({ kind }) => kind === 'CustomResourceDefinition')
  .map(({ metadata }) => metadata.name);

let admin: KubeClient;
let leader: KubeClient;

beforeAll(async () => {
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  leader = createClient(await loadClusterConfig({ path: await kubeconfigFor('controller') }), {
    userAgent: 'refit-controller',
  });
});

beforeEach(async () => {
  await apply(await readFile(RIGHTS, 'utf8'));
  for (const name of NAMES)
    await admin.delete(customResourceDefinitions, name).catch(() => undefined);
  await vi.waitFor(
    async () => {
      const { items } = await admin.listAll(customResourceDefinitions);
      const left = items.filter(({ metadata }) => NAMES.includes(metadata.name));
      expect(left.map(({ metadata }) => metadata.name)).toEqual([]);
    },
    { timeout: 60_000, interval: 250 },
  );
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', RIGHTS]);
  await installDefinitions(admin, systemClock);
  leader.close();
  admin.close();
});

/** Applies the definitions as the user of `deploy/rbac.yaml`. Returns `<message> <name>` of each line of the log. */
async function applied(version: string, client = leader): Promise<string[]> {
  const lines: string[] = [];
  const note = (message: string, fields?: Readonly<Record<string, unknown>>): void =>
    void lines.push(`${message} ${String(fields?.['name'])}`);
  const log: Logger = { debug: note, info: note, warn: note, error: note, child: () => log };
  const { signal: abort } = new AbortController();
  await applyDefinitions({ client, version, clock: systemClock, log, abort });
  return lines;
}

async function definition(): Promise<CustomResourceDefinition> {
  return await admin.get(customResourceDefinitions, PLANS);
}

test('Refit installs all missing CRDs at its start, and a second start changes nothing', async () => {
  expect(await applied('0.2.0')).toEqual(NAMES.map((name) => `applied a definition ${name}`));
  const first = await definition();
  expect(first.metadata.annotations).toMatchObject({ [APPLIED_BY_ANNOTATION]: '0.2.0' });
  expect(await applied('0.2.0')).toEqual([]);
  expect((await definition()).metadata.resourceVersion).toBe(first.metadata.resourceVersion);
});

test('a newer Refit applies its CRDs, and an older Refit then leaves them unchanged', async () => {
  await applied('0.2.0');
  expect(await applied('0.10.0')).toEqual(NAMES.map((name) => `applied a definition ${name}`));
  const newest = await definition();
  expect(await applied('0.9.0')).toEqual(
    NAMES.map((name) => `left a definition as it is, because a newer Refit applied it ${name}`),
  );
  expect((await definition()).metadata.resourceVersion).toBe(newest.metadata.resourceVersion);
});

test('a newer Refit that applies a definition after an older one has read it keeps its definition', async () => {
  await applied('0.2.0');
  let isFirst = true;
  const patch: KubeClient['patch'] = async (...call) => {
    if (isFirst) {
      isFirst = false;
      await applied('0.10.0');
    }
    return await leader.patch(...call);
  };
  const lines = await applied('0.9.0', { ...leader, patch });
  expect(isFirst).toBe(false);
  expect(lines).toEqual(
    NAMES.map((name) => `left a definition as it is, because a newer Refit applied it ${name}`),
  );
  expect((await definition()).metadata.annotations?.[APPLIED_BY_ANNOTATION]).toBe('0.10.0');
});

test('a different definition of somebody else stays, and the log says so', async () => {
  const text = await readFile(`deploy/crds/autopilot.k0sproject.io_plans.yaml`, 'utf8');
  await apply(text.replace('description: What the plan does.', 'description: Of another release.'));
  const before = await definition();
  expect(await applied('0.2.0')).toContainEqual(
    expect.stringMatching(/^left a definition as it is, because somebody else .* plans\.autopilot/),
  );
  expect((await definition()).spec).toEqual(before.spec);
  expect(JSON.stringify(before.spec)).toContain('Of another release.');
});

test('the process: with the rights it serves a cluster without definitions', async () => {
  const flags = ['--kubeconfig', await kubeconfigFor('controller')];
  await using refit = new RefitProcess('controller', '--apply-crds', ...flags);
  await vi.waitFor(() => expect(refit.stderr.join('\n')).toContain('"refit-controller starts"'), {
    timeout: 60_000,
    interval: 100,
  });
  expect(await refit.stop('SIGTERM')).toBe(0);
  expect((await definition()).metadata.managedFields?.map(({ manager }) => manager)).toContain(
    'refit-definitions',
  );
});

test('the process: without the rights it ends, and names the command that prints them', async () => {
  await kubectlAs('admin', ['delete', '-f', RIGHTS]);
  const flags = ['--kubeconfig', await kubeconfigFor('controller')];
  await using refit = new RefitProcess('controller', '--apply-crds', ...flags);
  expect(await refit.ended).toBe(4);
  expect(refit.stderr.join('\n')).toMatch(
    /REFIT_FORBIDDEN: --apply-crds needs the right to get, create and patch definitions: .*`refit install rights crds` prints/,
  );
});
