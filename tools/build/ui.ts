/** Builds the user interface in ui/ as one script and one style, in the cache of this checkout. */
import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { build } from 'vite';

const ROOT = join(import.meta.dirname, '..', '..');
const CACHE = join(ROOT, 'node_modules', '.cache', 'ui');

/** Returns the folder with `ui.js` and `ui.css`. The same sources are built once. */
export async function buildUi(): Promise<string> {
  const folder = join(CACHE, await digestOf(['ui/**/*', 'package-lock.json', 'tools/build/ui.ts']));
  if (existsSync(folder)) return folder;
  await mkdir(dirname(folder), { recursive: true });
  const staging = await mkdtemp(`${folder}-`);
  await build({
    root: join(ROOT, 'ui'),
    configFile: false,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
    build: {
      outDir: staging,
      emptyOutDir: true,
      modulePreload: false,
      rolldownOptions: {
        input: join(ROOT, 'ui', 'main.tsx'),
        output: { entryFileNames: 'ui.js', assetFileNames: 'ui.[ext]', codeSplitting: false },
      },
    },
  });
  // Another process may have built the same sources at the same time.
  await rename(staging, folder).catch(async (error: unknown) => {
    await rm(staging, { recursive: true });
    if (!existsSync(folder)) throw error;
  });
  return folder;
}

async function digestOf(patterns: readonly string[]): Promise<string> {
  const digest = createHash('sha256');
  const entries = globSync(patterns, { cwd: ROOT, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  for (const path of paths.toSorted()) digest.update(path).update(await readFile(path));
  return digest.digest('hex').slice(0, 16);
}
