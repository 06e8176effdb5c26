/** Restores the static pods of a host whose control plane does not work after an upgrade. */
import { readyCondition } from '../../../kube/resources.ts';
import { messageOf } from '../../../util/errors.ts';
import { filledScript } from './filled-script.ts';
import { attempt, saidBy } from './host.ts';
import { expectNone, type HostStepsParts, runOnHost, until } from './host-steps.ts';
import { type HostFacts, readFacts } from './probe.ts';
import { staticPodsBackScript } from './scripts.ts';
import { type HostState, problemsOf, staticPodChecks } from './verify.ts';

/** The most milliseconds to wait until the restored static pods are ready. */
export const BACK_MS = 120_000;

/**
 * If a static pod is the reason why the host is not verified, restores the manifests to the state before kubeadm
 * changed them, either all of them or none. Resolves with a clause about the result for the end of a message; empty if
 * no static pod is the reason.
 */
export async function rollBackStaticPods(on: HostStepsParts): Promise<string> {
  const { host, parts, rollout, log, abort } = on;
  if (host.role !== 'controlPlane' || !parts.includes('kubeadm')) return '';
  if (!(await areBroken(on))) return '';
  abort.throwIfAborted();
  log.warn('static pods do not work; rolling back', { node: host.name });
  const back = await attempt(runOnHost(on, staticPodsBackScript(rollout)));
  abort.throwIfAborted();
  const said = saidBy(back);
  if (back.code !== 0) return `; static pods stay as they are: ${said}`;
  const undone = `; static pods rolled back: ${said}`;
  try {
    await until(on, BACK_MS, async () => expectNone(problemsIn(await stateOf(on))));
    return `${undone}; they are ready`;
  } catch (error) {
    abort.throwIfAborted();
    return `${undone}; but they are not ready: ${messageOf(error)}`;
  }
}

/**
 * Resolves with true if a static pod is the reason why the host does not work. If the kubelet does not run, the kubelet
 * is the reason. Restored manifests would not help then, because the kubelet could not restart the static pods. If no
 * API server answers, the API server of this host is the reason, unless it is ready.
 */
async function areBroken(on: HostStepsParts): Promise<boolean> {
  let facts: HostFacts;
  try {
    facts = await readFacts(on.shells, on.host);
  } catch {
    return false;
  }
  const [node, pods] = await Promise.all([
    on.node().catch(() => undefined),
    on.pods().catch(() => undefined),
  ]);
  if (node && pods) {
    const isReady = readyCondition(node)?.status === 'True';
    return isReady && problemsIn({ facts, node, pods }, on.version).length > 0;
  }
  return facts.kubeletCrashes === undefined && !(await isServing(on));
}

/**
 * Resolves with true if the API server of the host is ready. Also resolves with true if the host cannot be reached,
 * because then Refit has no evidence that the API server is broken.
 */
async function isServing({ shells, host }: HostStepsParts): Promise<boolean> {
  try {
    const { code, stdout } = await shells.run(host, filledScript('readyz.sh', {}));
    return code === 0 && stdout.trim() === '200';
  } catch {
    return true;
  }
}

async function stateOf(on: HostStepsParts): Promise<HostState> {
  const [facts, node, pods] = await Promise.all([
    readFacts(on.shells, on.host),
    on.node(),
    on.pods(),
  ]);
  return { facts, node, pods };
}

function problemsIn(state: HostState, version?: string): string[] {
  return problemsOf(staticPodChecks(state, version));
}
