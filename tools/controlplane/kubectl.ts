/** Runs kubectl as one user against a running control plane. */
import { dirname, join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';
import { type RunResult, run } from './run.ts';

export async function kubectl(
  command: string,
  kubeconfig: string,
  args: readonly string[],
  input?: string,
): Promise<RunResult> {
  return await run(command, [`--kubeconfig=${kubeconfig}`, ...args], {
    // Cache discovery beside the kubeconfig: leave nothing in the home directory.
    environment: { KUBECACHEDIR: join(dirname(kubeconfig), 'cache') },
    ...(input === undefined ? {} : { input }),
  });
}

/** Applies YAML or JSON text; throws REFIT_TESTENV when the API server refuses any of it. */
export async function applyManifest(command: string, kubeconfig: string, manifest: string): Promise<void> {
  const { ok, stderr } = await kubectl(command, kubeconfig, ['apply', '-f', '-'], manifest);
  if (!ok) throw new RefitError('REFIT_TESTENV', `kubectl apply: ${stderr.trim()}`);
}
