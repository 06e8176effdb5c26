/** Tests the message of the dashboard tests if no browser is available. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { RefitError } from '../../src/util/errors.ts';
import { fetchChromium } from './chromium.ts';

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'refit-chromium-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  return folder;
}

test('without apt-get, the reason and the way out are named, and nothing half is left', async () => {
  const cache = await emptyFolder();
  vi.stubEnv('PATH', await emptyFolder());
  onTestFinished(() => void vi.unstubAllEnvs());
  const refused = await fetchChromium({ XDG_CACHE_HOME: cache }).catch((error: unknown) => error);
  expect(refused instanceof RefitError && refused.line).toMatch(
    /^REFIT_FILE: no Chromium for the tests of the dashboard: .*apt-get.* \(repair .* or name a Chromium in the variable REFIT_CHROMIUM\)$/,
  );
  expect(await readdir(join(cache, 'refit', 'chromium'))).toEqual([]);
});

test('a browser of your own is taken as it is', async () => {
  const path = join(await emptyFolder(), 'chromium');
  await writeFile(path, '');
  expect(await fetchChromium({ REFIT_CHROMIUM: path })).toEqual({ executablePath: path, env: {} });
});
