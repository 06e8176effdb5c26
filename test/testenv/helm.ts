/** Runs Helm against a running control plane, with a home of its own. */
import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import { ensureComponents } from '../../tools/controlplane/build.ts';
import { type RunResult, run } from '../../tools/controlplane/run.ts';

/** The path of the binary. Built once, in about a minute and a half. */
export async function buildHelm(abort?: AbortSignal): Promise<string> {
  const log = (line: string): void => void process.stderr.write(`${line}\n`);
  const now = (): number => systemClock.monotonic();
  return (await ensureComponents(['helm'], { environment: process.env, log, now, abort })).helm;
}

/** `directory` holds what Helm keeps: nothing is left in the home directory. */
export async function helm(directory: string, args: readonly string[]): Promise<RunResult> {
  const home = Object.fromEntries(
    ['HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME', 'KUBECACHEDIR'].map((name) => [
      name,
      join(directory, name.toLowerCase()),
    ]),
  );
  return await run(await buildHelm(), args, { environment: home });
}
