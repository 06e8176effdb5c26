/**
 * The command behind `npm run proof:eviction-requests`: the controllers of a pre-release of Kubernetes evict pods for drains of Refit.
 */
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/util/clock.ts';
import { messageOf } from '../../../src/util/errors.ts';
import { startControlPlane } from '../../../tools/controlplane/control-plane.ts';
import { runMain } from '../../../tools/main.ts';
import { Checks } from '../checks.ts';
import { conclude, parsed } from '../command.ts';
import { buildPrograms, VERSION } from './programs.ts';
import { openScene, PARTS } from './scene.ts';

const HELP = `Usage: npm run proof:eviction-requests -- [--programs FOLDER] [--logs FOLDER]

Builds kube-apiserver and kube-controller-manager ${VERSION} with Go 1.27, which needs the module proxy and takes up to an hour once.
Starts them with the feature gate EvictionRequestAPI, and drains simulated nodes by EvictionRequests. Nothing is left behind.

  --programs FOLDER  a folder with both programs, which are then not built
  --logs FOLDER      where the logs of all processes are copied to at the end
  --help             this text
`;

/** Arguments beside those of every test. */
const MORE = {
  'kube-apiserver':
    '--feature-gates=EvictionRequestAPI=true --runtime-config=lifecycle.k8s.io/v1alpha1=true',
  'kube-controller-manager': '--feature-gates=EvictionRequestAPI=true',
};

/** Writes a script for each program that starts it with more arguments. */
async function writeStarters(folder: string, programs: string): Promise<void> {
  for (const [name, more] of Object.entries(MORE)) {
    const path = join(folder, name);
    await writeFile(path, `#!/bin/sh\nexec '${join(programs, name)}' "$@" ${more}\n`);
    await chmod(path, 0o755);
  }
}

await runMain(async (args, abort) => {
  const text = { type: 'string' } as const;
  const options = { programs: text, logs: text, help: { type: 'boolean' } } as const;
  const { values } = parsed(() => parseArgs({ args, options }));
  if (values.help === true) {
    process.stdout.write(HELP);
    return 0;
  }
  const started = systemClock.monotonic();
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const programs = values.programs ?? (await buildPrograms({ log, abort }));
  const directory = await mkdtemp(join(tmpdir(), 'refit-eviction-requests-'));
  const checks = new Checks(log);
  try {
    await writeStarters(directory, programs);
    process.env['KUBEBUILDER_ASSETS'] = directory;
    const components = ['kube-controller-manager', 'kwok'] as const;
    const controlPlane = await startControlPlane({ components, audit: true, log, abort });
    try {
      const scene = await openScene(controlPlane, checks, abort);
      for (const [name, part] of Object.entries(PARTS))
        await part(scene).catch(
          async (error: unknown) => await checks.check(name, () => [messageOf(error)]),
        );
      scene.close();
    } finally {
      if (values.logs !== undefined) {
        await mkdir(values.logs, { recursive: true });
        await cp(join(controlPlane.directory, 'logs'), values.logs, { recursive: true });
      }
      await controlPlane.stop();
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  return conclude(checks.outcome, started);
});
