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
  await must(command, kubeconfig, ['apply', '-f', '-'], manifest);
  // A busy API server that lost a definition before serves it again only after seconds.
  if (/^kind: CustomResourceDefinition$/m.test(manifest))
    await must(command, kubeconfig, ['wait', '--for=condition=Established', '--timeout=150s', '-f', '-'], manifest);
}

async function must(command: string, kubeconfig: string, args: readonly string[], input: string): Promise<void> {
  const { ok, stderr } = await kubectl(command, kubeconfig, args, input);
  if (!ok) throw new RefitError('REFIT_TESTENV', `kubectl ${args[0]}: ${stderr.trim()}`);
}
