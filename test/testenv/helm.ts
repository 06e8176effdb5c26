/** Runs Helm against a running control plane, with its own home directory. */
import { join } from 'node:path';
import { expect } from 'vitest';
import { type RunResult, run } from '../../tools/controlplane/run.ts';
import { buildTool } from './build-tool.ts';

/** `directory` contains all files that Helm keeps, so that Helm leaves no file in the home directory. */
export async function helm(directory: string, args: readonly string[]): Promise<RunResult> {
  const home = Object.fromEntries(
    ['HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME', 'KUBECACHEDIR'].map((name) => [
      name,
      join(directory, name.toLowerCase()),
    ]),
  );
  return await run(await buildTool('helm'), args, { environment: home });
}

/** Returns what Helm printed. The test fails with the error of Helm. */
export async function expectHelm(directory: string, args: readonly string[]): Promise<string> {
  const { ok, stdout, stderr } = await helm(directory, args);
  expect({ ok, stderr }).toEqual({ ok: true, stderr: expect.any(String) as string });
  return stdout;
}
