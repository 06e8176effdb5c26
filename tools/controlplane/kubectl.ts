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

/** Applies YAML or JSON text; a kind that it defines is served then. Throws REFIT_TESTENV when any of it is refused. */
export async function applyManifest(command: string, kubeconfig: string, manifest: string): Promise<void> {
  throwIfFailed('apply', await kubectl(command, kubeconfig, ['apply', '-f', '-'], manifest));
  // A busy API server that lost a definition before serves it again only after seconds.
  if (/^kind: CustomResourceDefinition$/m.test(manifest)) await waitUntilEstablished(command, kubeconfig, manifest);
}

async function waitUntilEstablished(command: string, kubeconfig: string, manifest: string): Promise<void> {
  const wait = ['wait', '--for=condition=Established', '--timeout=150s', '-f', '-'];
  let result = await kubectl(command, kubeconfig, wait, manifest);
  // kubectl gives up on a definition so new that its conditions are null.
  while (result.stderr.includes('.status.conditions accessor error'))
    result = await kubectl(command, kubeconfig, wait, manifest);
  throwIfFailed('wait', result);
}

function throwIfFailed(verb: string, { ok, stderr }: RunResult): void {
  if (!ok) throw new RefitError('REFIT_TESTENV', `kubectl ${verb}: ${stderr.trim()}`);
}
