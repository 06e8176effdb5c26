/**
 * Runs in its own namespaces (the isolation of Linux): the managers of one release, the API server, Refit, and the
 * parts of the proof.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Rollouts } from '../../../src/dialects/capi/plan/machine-owners.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { messageOf } from '../../../src/util/errors.ts';
import { must } from '../../../tools/release/commands.ts';
import { Checks } from '../checks.ts';
import type { CertManager } from './managers/cert-manager.ts';
import type { HookTypes, Program } from './managers/programs.ts';
import { PARTS } from './parts/parts.ts';
import { register } from './parts/registration.ts';
import { schema } from './parts/schema.ts';
import { makeCluster, openScene } from './scene.ts';

export interface InsideOptions {
  readonly directory: string;
  readonly programs: readonly Program[];
  readonly certManager?: CertManager;
  readonly types: HookTypes;
  readonly parts: readonly string[];
  /** The built command. */
  readonly refit: string;
  readonly rollouts: Rollouts;
  /** File for the outcome. */
  readonly result: string;
}

/**
 * Sets up the network. The managers listen for webhook calls on all addresses. Here these are loopback and an address
 * that nobody outside can reach.
 */
async function makeNetwork(): Promise<void> {
  const address = '192.0.2.1';
  await must('ip', ['link', 'set', 'lo', 'up']);
  await must('ip', ['link', 'add', 'proof0', 'type', 'veth', 'peer', 'name', 'proof1']);
  await must('ip', ['addr', 'add', `${address}/24`, 'dev', 'proof0']);
  for (const end of ['proof0', 'proof1']) await must('ip', ['link', 'set', end, 'up']);
  // An API server does not start without a default route.
  await must('ip', ['route', 'add', 'default', 'via', '192.0.2.2', 'src', address]);
}

const options = JSON.parse(await readFile(process.argv[2] ?? '', 'utf8')) as InsideOptions;
const log = (line: string): void => void process.stdout.write(`${line}\n`);
const checks = new Checks(log);
const begun = systemClock.monotonic();
const { directory, parts, types } = options;
const abort = new AbortController().signal;
await makeNetwork();
for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
try {
  await using started = new AsyncDisposableStack();
  const scene = await openScene({ ...options, checks, log, abort }, started);
  await schema(scene, types);
  await register(scene);
  await checks.check(
    'a cluster of 3 + 2 Machines is there, with Nodes on the real API server',
    async () => {
      await makeCluster(scene);
      return [];
    },
  );
  for (const part of parts) {
    log(`part ${part}, after ${Math.round((systemClock.monotonic() - begun) / 1000)} s`);
    await PARTS[part]?.(scene).catch(
      async (error: unknown) => await checks.check(part, () => [messageOf(error)]),
    );
  }
} catch (error) {
  await checks.check('the proof comes to its end', () => [messageOf(error)]);
}
await writeFile(options.result, JSON.stringify(checks.outcome));
process.exit(0);
