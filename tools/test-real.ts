/** The command behind `npm run test:real`: the second tier of the tests, on the usual release of Kubernetes or another. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { EXIT } from '../src/util/errors.ts';
import { HELP, realTestsOf } from './controlplane/real-tests.ts';
import { runMain } from './main.ts';

const VITEST = join(import.meta.dirname, '..', 'node_modules', 'vitest', 'vitest.mjs');

/** Resolves with the exit code of vitest. */
async function main(args: string[], abort: AbortSignal): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(HELP);
    return EXIT.ok;
  }
  const { projects, others, environment } = realTestsOf(args);
  const named = projects.flatMap((name) => ['--project', name]);
  const vitest = spawn(process.execPath, [VITEST, 'run', ...named, ...others], {
    stdio: 'inherit',
    env: { ...process.env, ...environment },
  });
  const end = (): void => {
    // A terminal sends SIGINT to both processes.
    if ((abort.reason as Error).message !== 'SIGINT') vitest.kill('SIGTERM');
  };
  abort.addEventListener('abort', end, { once: true });
  const [code] = (await once(vitest, 'close')) as [number | null];
  return code ?? EXIT.failed;
}

await runMain(main);
