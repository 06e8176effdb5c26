/** Runs Helm against a running control plane, with a home of its own. */
import { join } from 'node:path';
import { type RunResult, run } from '../../tools/controlplane/run.ts';
import { buildTool } from './build-tool.ts';

/** `directory` holds what Helm keeps: nothing is left in the home directory. */
export async function helm(directory: string, args: readonly string[]): Promise<RunResult> {
  const home = Object.fromEntries(
    ['HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME', 'KUBECACHEDIR'].map((name) => [
      name,
      join(directory, name.toLowerCase()),
    ]),
  );
  return await run(await buildTool('helm'), args, { environment: home });
}
