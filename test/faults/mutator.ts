/**
 * Makes random changes to a small set of Leases: creates, edits and deletes them, and creates them again under the same
 * name.
 */
import type { KubeClient, RequestOptions } from '../../src/kube/client.ts';
import { type Lease, leases } from '../../src/kube/resources.ts';
import { isNotFound, StatusError, TransportError } from '../../src/kube/status-error.ts';
import { pick } from './random.ts';

export interface MutatorParts {
  readonly random: () => number;
  readonly namespace: string;
  /** Without faults. */
  readonly direct: KubeClient;
  /** A client with faults. One change in ten uses this client. */
  readonly faulty: KubeClient;
  /** Called occasionally. Compacts the history of the server. */
  readonly compact: () => void;
}

/** The number of names is small, so that objects are often deleted and created again under the same name. */
const NAMES = Array.from({ length: 25 }, (_, index) => `lease-${index}`);
/** The label that about half of the objects have at any time. Edits add it and remove it. */
export const CHOSEN = 'chosen';

/** The last known state of each object on the server. A name whose state is not known is missing from the map. */
type Known = Map<string, Lease | undefined>;

/** Resolves after `count` changes that the server really made. */
export async function mutate(count: number, parts: MutatorParts): Promise<void> {
  const { random, direct, faulty, compact } = parts;
  const known: Known = new Map();
  /**
   * The names of objects that were changed through the faulty client and whose answer was lost. The server may still
   * make such a change at any later time.
   */
  const unsettled = new Set<string>();
  for (let made = 0; made < count; ) {
    if (random() < 0.005) compact();
    const client = random() < 0.1 ? faulty : direct;
    const name = pick(random, NAMES);
    try {
      made += await change(client, name, known, parts);
    } catch (error) {
      known.delete(name);
      if (client === faulty && (error instanceof StatusError || error instanceof TransportError)) {
        if (error instanceof TransportError) unsettled.add(name);
      } else if (!(unsettled.has(name) && isOvertaken(error))) throw error;
    }
  }
}

/** Whether another change came between the read of the object and this change. */
function isOvertaken(error: unknown): boolean {
  return error instanceof StatusError && [404, 409].includes(error.code);
}

/**
 * Makes one random change. Returns the number of changes that the server made: 2 if the object was deleted and created
 * again.
 */
async function change(
  client: KubeClient,
  name: string,
  known: Known,
  parts: MutatorParts,
): Promise<number> {
  const { random, namespace } = parts;
  // The clock of the faulty client is fast, so that it soon gives up. The direct client waits long enough for a busy
  // machine.
  const options = { namespace, deadlineMs: client === parts.direct ? 60_000 : 4_000 };
  const chance = random();
  const current = known.has(name) ? known.get(name) : await read(client, name, options);
  known.delete(name);
  if (!current) {
    known.set(name, await client.create(leases, lease(name, random), options));
    return 1;
  }
  if (chance < 0.7) {
    const { spec = {}, metadata } = lease(name, random);
    const edited = {
      ...current,
      spec,
      metadata: { ...current.metadata, labels: metadata.labels ?? {} },
    };
    known.set(name, await client.replace(leases, edited, options));
    return 1;
  }
  const { uid, resourceVersion } = current.metadata;
  await client.delete(leases, name, { ...options, ...(uid ? { uid } : {}), resourceVersion });
  known.set(name, undefined);
  if (chance < 0.85) return 1;
  known.set(name, await client.create(leases, lease(name, random), options));
  return 2;
}

async function read(
  client: KubeClient,
  name: string,
  options: RequestOptions,
): Promise<Lease | undefined> {
  try {
    return await client.get(leases, name, options);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function lease(name: string, random: () => number): Lease {
  const labels: Record<string, string> = random() < 0.5 ? { [CHOSEN]: 'yes' } : {};
  return {
    metadata: { name, labels },
    spec: { holderIdentity: `holder-${Math.floor(random() * 1e9)}` },
  };
}
