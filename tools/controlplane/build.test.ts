/** Tests in which places binaries are searched. Every test on the control plane tests that the binaries can be built. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { cacheDirectory, ensureComponents } from './build.ts';

let directory: string;
const log = vi.fn<(line: string) => void>();

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'refit-build-'));
  log.mockClear();
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

test.each([
  [{ XDG_CACHE_HOME: '/big/cache' }, '/big/cache/refit/controlplane'],
  [{ XDG_CACHE_HOME: '', HOME: '/people/ada' }, '/people/ada/.cache/refit/controlplane'],
  [{ HOME: '/people/ada' }, '/people/ada/.cache/refit/controlplane'],
])('%j: the cache is %s', (environment, path) => {
  expect(cacheDirectory(environment)).toBe(path);
});

test('KUBEBUILDER_ASSETS wins for the components that it holds', async () => {
  for (const name of ['etcd', 'kubectl']) writeFileSync(join(directory, name), '');
  const environment = { KUBEBUILDER_ASSETS: directory, XDG_CACHE_HOME: join(directory, 'cache') };
  const paths = await ensureComponents(['etcd', 'kubectl'], { environment, log, now: () => 0 });
  expect(paths).toEqual({ etcd: join(directory, 'etcd'), kubectl: join(directory, 'kubectl') });
  expect(log).not.toHaveBeenCalled();
});

test('what it does not hold is built, for which there must be Go or Python', async () => {
  writeFileSync(join(directory, 'etcd'), '');
  vi.stubEnv('PATH', directory);
  const environment = { KUBEBUILDER_ASSETS: directory, XDG_CACHE_HOME: join(directory, 'cache') };
  const building = ensureComponents(['etcd', 'kwok'], { environment, log, now: () => 0 });
  await expect(building).rejects.toMatchObject({
    code: 'REFIT_TESTENV',
    message: /Go is not in PATH.*install Go 1\.26/,
  });
});
