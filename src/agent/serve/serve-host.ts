/** Runs the agents of this host, and starts them anew when the host gets another name in the cluster. */
import type { ClusterConfig } from '../../kube/config/cluster-config.ts';
import { isNotFound } from '../../kube/status-error.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { SIGNAL_OBJECTS } from '../../signal/names.ts';
import { LeaseDelegation } from '../maintenance/lease-delegation.ts';
import { controlNodeName, nodeName } from '../registration/host-name.ts';
import { loadJournal } from '../state/journal-file.ts';
import { type HostParts, serveNode } from './object-agent.ts';
import { serveController } from './serve-controller.ts';
import { workForValue } from './work-for-value.ts';

/** The parts that do not depend on the name of the object. */
interface HostBasis extends Omit<HostParts, 'client' | 'userAgent'> {
  readonly config: ClusterConfig;
  /** Version of this program. */
  readonly version: string;
}

/** Works until `stop` aborts. Rejects when the object cannot be read at the start, or a journal cannot be read. */
export async function serveHost(host: HostBasis, stop: AbortSignal): Promise<void> {
  const over = new AbortController();
  const ending = AbortSignal.any([stop, over.signal]);
  const name = { current: () => nameFor(host), onChange: (listener: () => void) => host.places.onChange(listener) };
  try {
    await Promise.all([
      host.places.keepSearching(ending),
      workForValue(name, async (own, abort) => await serveObject(host, own, abort), ending),
    ]);
  } finally {
    over.abort();
  }
}

function nameFor({ options: { name, object }, places }: HostBasis): string {
  if (name !== undefined) return name;
  return object === 'node' ? nodeName(places.current, process.env) : controlNodeName(places.current, process.env);
}

async function serveObject(basis: HostBasis, name: string, stop: AbortSignal): Promise<void> {
  const { options, paths, clock, config, version } = basis;
  const log = basis.log.child({ node: name });
  const userAgent = `refit-agent/${version} (${name})`;
  const client = createClient(config, { clock, userAgent });
  const host = { ...basis, client, userAgent, log };
  try {
    const { phase } = await loadJournal(paths.journal);
    // Started work continues without an API server, because that may run on this host.
    if (phase === 'idle') await checkObject(host, name, stop);
    log.info('agent started', { version, object: options.object });
    await (options.object === 'node' ? serveWorker(host, name, stop) : serveController(host, name, stop));
  } finally {
    client.close();
  }
}

async function serveWorker(host: HostParts, name: string, stop: AbortSignal): Promise<void> {
  const options = {
    journal: host.paths.journal,
    accepts: ['k0supdate', 'airgapupdate'],
    delegation: new LeaseDelegation(host.client),
  } as const;
  await serveNode(host, name, options, stop);
}

/**
 * Rejects when the object cannot be read, so that a wrong configuration shows at the start. A missing object is waited
 * for, and so is the kind ControlNode, which a cluster may get after its first controller.
 */
async function checkObject({ client, options }: HostParts, name: string, abort: AbortSignal): Promise<void> {
  try {
    await client.get(SIGNAL_OBJECTS[options.object], name, { abort });
  } catch (error) {
    const mayCome = isNotFound(error) && (options.object === 'controlnode' || error.status.details?.name !== undefined);
    if (!mayCome) throw error;
  }
}
