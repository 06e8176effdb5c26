/** Creates a client that uses the other API servers of the cluster while the configured API server does not answer. */
import { isIP } from 'node:net';
import { systemClock } from '../../util/clock.ts';
import type { KubeClient } from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { type EndpointSlice, endpointSlices } from '../resources.ts';
import { type ClientOptions, createClient } from './http-client.ts';
import { type ServerAddress, serverAddresses } from './server-addresses.ts';

/** The object in which the API servers list their addresses. */
const PEERS = { name: 'kubernetes', namespace: 'default' } as const;
/**
 * Milliseconds between two reads of the addresses. They rarely change, and every agent reads them.
 */
const LEARN_EVERY_MS = 30 * 60_000;
/**
 * Milliseconds from a failed connection to the next read. The API server that answers then may know
 * new addresses.
 */
const LEARN_AFTER_FAILURE_MS = 5_000;

/**
 * Returns a client that learns the other API servers from the endpoints of the Service
 * `kubernetes`.
 */
export function createRoamingClient(
  config: ClusterConfig,
  options: ClientOptions = {},
): KubeClient & Disposable {
  const { protocol, hostname, port } = new URL(config.server);
  // The endpoints are only addresses, so the certificates of all servers must be valid for the
  // configured name. If there is a proxy, the proxy chooses the server.
  if (protocol !== 'https:' || config.insecureSkipTlsVerify || config.proxyUrl)
    return createClient(config, options);
  const { clock = systemClock, onRequest } = options;
  const host = hostname.replace(/^\[|\]$/g, '');
  let learnAt = -Infinity;
  const addresses = serverAddresses({ host, port: Number(port || 443) }, clock);
  const learn = async (): Promise<void> => {
    learnAt = clock.monotonic() + LEARN_EVERY_MS;
    // Without the right to read the endpoints, the client uses only the configured server.
    const slice = await client.get(endpointSlices, PEERS.name, PEERS).catch(() => undefined);
    if (slice) addresses.learn(addressesIn(slice));
  };
  const client = createClient(config, {
    ...options,
    addresses,
    onRequest(record) {
      onRequest?.(record);
      if (record.code === 0)
        learnAt = Math.min(learnAt, clock.monotonic() + LEARN_AFTER_FAILURE_MS);
      else if (clock.monotonic() >= learnAt) void learn();
    },
  });
  return client;
}

function addressesIn({ endpoints, ports }: EndpointSlice): ServerAddress[] {
  const numbers = (ports ?? []).flatMap(({ port }) => port ?? []);
  return (endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready !== false)
    .flatMap(({ addresses }) => addresses)
    .filter((host) => isIP(host) !== 0)
    .flatMap((host) => numbers.map((port) => ({ host, port })));
}
