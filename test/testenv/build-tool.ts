/**
 * Builds a program that only some test files need. The pool of control planes builds all these programs immediately
 * after the programs of the control plane.
 */
import { systemClock } from '../../src/util/clock.ts';
import { ensureComponents } from '../../tools/controlplane/build.ts';

export type Tool = 'etcdutl' | 'helm';

/** The path of the binary. */
export async function buildTool(name: Tool, abort?: AbortSignal): Promise<string> {
  const log = (line: string): void => void process.stderr.write(`${line}\n`);
  const now = (): number => systemClock.monotonic();
  return (await ensureComponents([name], { environment: process.env, log, now, abort }))[name];
}
