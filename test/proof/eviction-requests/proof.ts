/**
 * The command behind `npm run proof:eviction-requests`: the controllers of a pre-release of Kubernetes evict pods when
 * Refit drains nodes.
 */
import { existsSync } from 'node:fs';
import { chmod, cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/util/clock.ts';
import { messageOf, RefitError } from '../../../src/util/errors.ts';
import { applyManifest } from '../../../tools/controlplane/apply.ts';
import { type ControlPlane, startControlPlane } from '../../../tools/controlplane/control-plane.ts';
import { startProcess } from '../../../tools/controlplane/process.ts';
import { runMain } from '../../../tools/main.ts';
import { Checks, type Outcome } from '../checks.ts';
import { conclude, parsed } from '../command.ts';
import { buildPrograms, readKinds, VERSION } from './programs.ts';
import { openScene, PARTS, WHOLE_PARTS } from './scene.ts';

const HELP = `Usage: npm run proof:eviction-requests -- [--whole] [--programs FOLDER] [--logs FOLDER]

Builds the two controllers of Kubernetes ${VERSION} that carry out EvictionRequests, runs them beside the API server of all tests, which
serves the kinds by CustomResourceDefinitions, and drains simulated nodes by EvictionRequests. Needs Go 1.26 or newer and the module
proxy, which has Go 1.27. Nothing is left behind.

  --whole            builds and starts kube-apiserver and kube-controller-manager ${VERSION} instead, with the feature gate
                     EvictionRequestAPI, and also checks which requests are accepted, and a responder that a pod names
  --programs FOLDER  a folder with the programs, which are then not built
  --logs FOLDER      where the logs of all processes are copied to at the end
  --help             this text
`;

const WHOLE = ['kube-apiserver', 'kube-controller-manager'] as const;
const CONTROLLERS = ['eviction-controllers'] as const;

/** Arguments in addition to those that every test uses. */
const MORE: Readonly<Record<(typeof WHOLE)[number], string>> = {
  'kube-apiserver':
    '--feature-gates=EvictionRequestAPI=true --runtime-config=lifecycle.k8s.io/v1alpha1=true',
  'kube-controller-manager': '--feature-gates=EvictionRequestAPI=true',
};

/** Makes the control plane start these programs with more arguments. */
async function useWhole(folder: string, programs: string): Promise<void> {
  for (const name of WHOLE) {
    const path = join(folder, name);
    await writeFile(path, `#!/bin/sh\nexec '${join(programs, name)}' "$@" ${MORE[name]}\n`);
    await chmod(path, 0o755);
  }
  process.env['KUBEBUILDER_ASSETS'] = folder;
}

/** Makes the API server serve the kinds, and starts the controllers. */
async function addControllers(place: ControlPlane, programs: string): Promise<AsyncDisposable> {
  const kubeconfig = await place.kubeconfig('admin');
  await applyManifest(kubeconfig, await readKinds());
  const { directory } = place;
  const controllers = await startProcess({
    name: 'eviction-controllers',
    command: join(programs, 'eviction-controllers'),
    args: [kubeconfig],
    directory,
    ready: async () => await Promise.resolve(true),
    clock: systemClock,
  });
  return { [Symbol.asyncDispose]: async () => await controllers.stop() };
}

interface Command {
  readonly isWhole: boolean;
  readonly programs: string;
  readonly logs: string | undefined;
}

async function prove(command: Command, directory: string, abort: AbortSignal): Promise<Outcome> {
  const { isWhole, programs, logs } = command;
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const checks = new Checks(log);
  if (isWhole) await useWhole(directory, programs);
  const components = ['kube-controller-manager', 'kwok'] as const;
  const place = await startControlPlane({ components, audit: true, log, abort });
  await using ending = new AsyncDisposableStack();
  ending.defer(async () => await place.stop());
  ending.defer(async () => {
    if (logs !== undefined) await cp(join(place.directory, 'logs'), logs, { recursive: true });
  });
  if (!isWhole) ending.use(await addControllers(place, programs));
  const scene = await openScene(place, checks, abort);
  ending.defer(() => scene.close());
  for (const [name, part] of Object.entries(isWhole ? { ...PARTS, ...WHOLE_PARTS } : PARTS))
    await part(scene).catch(
      async (error: unknown) => await checks.check(name, () => [messageOf(error)]),
    );
  return checks.outcome;
}

/** Throws REFIT_USAGE unless the folder has these programs. */
function assertHas(folder: string, names: readonly string[]): void {
  const missing = names.filter((name) => !existsSync(join(folder, name)));
  if (missing.length > 0)
    throw new RefitError(
      'REFIT_USAGE',
      `--programs wants a folder with ${names.join(' and ')}, found ${folder} without ${missing.join(' and ')}`,
    );
}

await runMain(async (args, abort) => {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const options = { whole: flag, programs: text, logs: text, help: flag } as const;
  const { values } = parsed(() => parseArgs({ args, options }));
  if (values.help === true) {
    process.stdout.write(HELP);
    return 0;
  }
  const isWhole = values.whole === true;
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const started = systemClock.monotonic();
  const names = isWhole ? WHOLE : CONTROLLERS;
  if (values.programs !== undefined) assertHas(values.programs, names);
  const programs = values.programs ?? (await buildPrograms(names, { log, abort }));
  const directory = await mkdtemp(join(tmpdir(), 'refit-eviction-requests-'));
  try {
    const command = { isWhole, programs, logs: values.logs };
    return conclude(await prove(command, directory, abort), started);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
