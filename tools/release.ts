/** The command behind `npm run release`: everything that is published with a version, in `release/`. */
import { join } from 'node:path';
import { EXIT } from '../src/util/errors.ts';
import { runMain } from './main.ts';
import { writeRelease } from './release/release.ts';

await runMain(async () => {
  const output = join(import.meta.dirname, '..', 'release');
  await writeRelease({ output, log: (line) => void process.stderr.write(`${line}\n`) });
  return EXIT.ok;
});
