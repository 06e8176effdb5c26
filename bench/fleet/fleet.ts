/** Runs a large cluster in one process: the API server in memory with all its objects, and an agent for each node. */
import {
  type ApiServer,
  type RequestRecord,
  startApiServer,
} from '../../sandbox/api-server/api-server.ts';
import { controllerAddress } from '../../sandbox/cluster/hosts.ts';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { leases, nodes, type Resource } from '../../src/kube/resources.ts';
import { clientOver } from '../../src/kube/transport/http-client.ts';
import { type ControlNode, controlNodes } from '../../src/signal/names.ts';
import { type Clock, rfc3339 } from '../../src/util/clock.ts';
import { SimulatedAgent } from './agent.ts';
import { controllerName, controlNode, nodeLease, workerName, workerNode } from './objects.ts';
import { countingEvents } from './tally.ts';

export const CONTROLLERS = 3;
/** The version that every node has at first. */
export const FROM = 'v1.36.3+k0s.0';

export interface FleetParts {
  readonly workers: number;
  /** The mean duration in milliseconds of each step of an agent that takes time. */
  readonly stepMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly onRequest: (record: RequestRecord) => void;
}

export interface Fleet {
  readonly server: ApiServer;
  /** The client for everything that people and kubelets do. It uses no socket. */
  readonly client: KubeClient;
  /** Counts, for each agent, the events of its watch: those of its own object, and those of other objects. */
  readonly events: ReadonlyMap<string, { own: number; others: number }>;
  stop(): Promise<void>;
}

/** Starts the fleet. Resolves when every agent watches. */
export async function startFleet({
  workers,
  stepMs,
  clock,
  random,
  onRequest,
}: FleetParts): Promise<Fleet> {
  const addresses = Array.from({ length: CONTROLLERS }, (_, index) => controllerAddress(index + 1));
  const server = await startApiServer({ addresses, onRequest, eventHistory: HISTORY });
  const client = clientOver(server.caller);
  await installDefinitions(client, clock);
  // Each agent has its own signal. A shared signal would be slow, because it goes through all its listeners when a
  // listener is added.
  const stops: AbortController[] = [];
  const events = new Map<string, { own: number; others: number }>();
  const running: Promise<void>[] = [];
  const add = (resource: Resource, name: string): void => {
    const seen = { own: 0, others: 0 };
    events.set(name, seen);
    const own = clientOver(
      countingEvents(server.caller, (of) => (of === name ? seen.own++ : seen.others++)),
    );
    const updated = async (node: string, version: string): Promise<void> =>
      await tellVersion(client, node, version);
    const stop = new AbortController();
    stops.push(stop);
    running.push(
      new SimulatedAgent({ client: own, resource, name, clock, random, stepMs, updated }).run(
        stop.signal,
      ),
    );
  };
  for (let index = 0; index < CONTROLLERS; index++) {
    const { status, ...object } = controlNode(index, FROM);
    const created = await client.create<ControlNode>(controlNodes, object);
    await client.replace(
      controlNodes,
      { ...created, ...(status ? { status } : {}) },
      { subresource: 'status' },
    );
    add(controlNodes, controllerName(index));
  }
  for (let index = 0; index < workers; index++) {
    await client.create(nodes, workerNode(index, FROM, rfc3339(clock.now())));
    await client.create(leases, nodeLease(workerName(index)), { namespace: 'kube-node-lease' });
    add(nodes, workerName(index));
  }
  return {
    server,
    client,
    events,
    async stop() {
      for (const stop of stops) stop.abort();
      await Promise.all(running);
      await server.stop();
    },
  };
}

/** The number of changes that the API server keeps for watches. It covers the busiest second, and limits the memory. */
const HISTORY = 2_000;

/**
 * Reports the new version in the same way as the process on a node. A kubelet reports it in the Node, and a controller
 * in the ControlNode.
 */
async function tellVersion(client: KubeClient, name: string, version: string): Promise<void> {
  const isController = name.startsWith('controller-');
  const status = isController ? { k0sVersion: version } : { nodeInfo: { kubeletVersion: version } };
  const options = { type: 'merge', subresource: 'status' } as const;
  await client.patch(isController ? controlNodes : nodes, name, { status }, options);
}
