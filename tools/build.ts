/** The command behind `npm run build`. It writes the `refit` command in its shipped form to `dist/`. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AGENT_FLAGS } from '../src/install/host/program.ts';
import { buildRefit } from './build/refit.ts';
import { readLock } from './release/node-package.ts';
import { bundledPackages, licenceTexts } from './release/third-party.ts';

const ROOT = join(import.meta.dirname, '..');
const dist = join(ROOT, 'dist');
const path = await buildRefit(dist);
await writeFile(
  join(dist, 'THIRD-PARTY-LICENSES.txt'),
  await licenceTexts(bundledPackages(await readLock(ROOT)), ROOT),
);
process.stdout.write(
  `${path}\n  node ${path} controller …\n  node ${AGENT_FLAGS.join(' ')} ${path} agent …\n`,
);
