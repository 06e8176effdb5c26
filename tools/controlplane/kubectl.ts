/** Runs kubectl as one user against a running control plane. */
import { dirname, join } from 'node:path';
import { type RunResult, run } from './run.ts';

export async function kubectl(
  command: string,
  kubeconfig: string,
  args: readonly string[],
  input?: string,
): Promise<RunResult> {
  return await run(command, [`--kubeconfig=${kubeconfig}`, ...args], {
    // Keeps the discovery cache in the folder of the kubeconfig, so that nothing is left in the home directory.
    environment: { KUBECACHEDIR: join(dirname(kubeconfig), 'cache') },
    ...(input === undefined ? {} : { input }),
  });
}
