/** Owns everything that works on this host, for as long as its object has one name. */
import type { ClusterConfig } from '../../kube/config/cluster-config.ts';
import { isNotFound } from '../../kube/status-error.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { SIGNAL_OBJECTS } from '../../signal/names.ts';
import { controlNodeName, nodeName } from '../registration/host-name.ts';
import { loadJournal } from '../state/journal-file.ts';
import { workForValue } from '../work-for-value.ts';
import type { HostParts } from './host-parts.ts';
import { serveController } from './serve-controller.ts';
import { serveWorker } from './serve-worker.ts';

/** What does not depend on the name of the object. */
export interface HostBasis extends Omit<HostParts, 'client' | 'userAgent'> {
  readonly config: ClusterConfig;
  /** Of this program. */
  readonly version: string;
}

/**
 * Works until `stop` aborts, and begins anew where the service turns out to have another name. Rejects where the object
 * cannot be read at the start, or a journal cannot.
 */
export async function serveHost(host: HostBasis, stop: AbortSignal): Promise<void> {
  const over = new AbortController();
  const ending = AbortSignal.any([stop, over.signal]);
  const name = { current: () => nameFor(host), onChange: (listener: () => void) => host.places.onChange(listener) };
  try {
    await Promise.all([
      host.places.keepLooking(ending),
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
    // What was begun goes on without an API server, which may run on this very host.
    if (phase === 'idle') await meet(host, name, stop);
    log.info('agent started', { version, object: options.object });
    await (options.object === 'node' ? serveWorker(host, name, stop) : serveController(host, name, stop));
  } finally {
    client.close();
  }
}

/**
 * Rejects where the object cannot be read, so that whoever starts the agent learns it; one that is to come is waited for,
 * and so is the kind of a controller's, which the cluster may get only after its first controller.
 */
async function meet({ client, options }: HostParts, name: string, abort: AbortSignal): Promise<void> {
  try {
    await client.get(SIGNAL_OBJECTS[options.object], name, { abort });
  } catch (error) {
    const isToCome =
      isNotFound(error) && (options.object === 'controlnode' || error.status.details?.name !== undefined);
    if (!isToCome) throw error;
  }
}
