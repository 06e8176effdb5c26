/** The mutations of the leader's actions apart from its decisions: its drains, and its requests to the API server. */

import { startApiServer } from '../../sandbox/api-server/api-server.ts';
import { askRemovedApis } from '../../src/dialects/autopilot/plan/removed-apis.ts';
import { DEFAULT_DRAIN } from '../../src/drain/pods.ts';
import { createDrains, type Drains, type DrainsParts } from '../../src/drain/running-drains.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { apiVersionOf, type Resource } from '../../src/kube/resources.ts';
import { clientOver } from '../../src/kube/transport/http-client.ts';
import { silentLogger } from '../../src/util/log.ts';
import { PodApi } from '../support/builders/pod-api.ts';
import { buildPod } from '../support/builders/pods.ts';
import { FakeClock } from '../support/clock/fake-clock.ts';
import { type Complaint, mutation } from './mutation.ts';

const OWNER = 'plan-uid/1';

/** Tests that two nodes are drained at the same time. The pod of the first node takes long to end. */
async function nodesDrainSideBySide(create: (parts: DrainsParts) => Drains): Promise<Complaint> {
  const api = new PodApi();
  for (const node of ['n1', 'n2']) api.put(buildPod(`of-${node}`, { node }));
  const clock = new FakeClock();
  const drains = create({ client: api.client, clock, random: () => 0.99, log: silentLogger });
  const stop = new AbortController();
  const running = drains.run(stop.signal);
  try {
    for (const node of ['n1', 'n2']) drains.begin(node, OWNER, DEFAULT_DRAIN);
    await clock.advance(120_000);
    const asked = api.evictions.map(({ pod }) => pod);
    return asked.includes('default/of-n2')
      ? undefined
      : `nothing but ${asked.join()} asked to go in two minutes`;
  } finally {
    stop.abort();
    await running;
  }
}

/** Begins a drain only after the drain before it has ended, as with the single worker of k0s Autopilot. */
function oneAfterTheOther(parts: DrainsParts): Drains {
  const drains = createDrains(parts);
  const begin: Drains['begin'] = drains.begin.bind(drains);
  const queue: string[] = [];
  const beginFirst = (): void =>
    queue.slice(0, 1).forEach((node) => begin(node, OWNER, DEFAULT_DRAIN));
  drains.onChange((node) => {
    if (queue[0] !== node || drains.stateOf(node, OWNER)?.kind === 'draining') return;
    queue.shift();
    beginFirst();
  });
  return Object.assign(drains, {
    begin: (node: string) => {
      if (queue.push(node) === 1) beginFirst();
    },
  });
}

const GROUP = 'k0s.k0sproject.example.com';
const DEFINITIONS: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};
const REMOVED: Resource = {
  group: GROUP,
  version: 'v1beta1',
  kind: 'RemovedCRD',
  plural: 'removedcrds',
  namespaced: false,
};
const DEFINITION = {
  apiVersion: apiVersionOf(DEFINITIONS),
  kind: DEFINITIONS.kind,
  metadata: { name: `${REMOVED.plural}.${GROUP}` },
  spec: {
    group: GROUP,
    names: { kind: REMOVED.kind, plural: REMOVED.plural },
    scope: 'Cluster',
    versions: [
      {
        name: REMOVED.version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object' } },
      },
    ],
  },
};
const LEFT_OVER = {
  apiVersion: apiVersionOf(REMOVED),
  kind: REMOVED.kind,
  metadata: { name: 'left-over' },
};

/**
 * Tests that the leader also finds a kind that is added after the leader's first request. The wanted version does not
 * serve this kind any more.
 */
async function newKindIsFound(between: (client: KubeClient) => KubeClient): Promise<Complaint> {
  const server = await startApiServer();
  try {
    const client = between(clientOver(server.caller));
    const ask = async (): Promise<string | undefined> =>
      await askRemovedApis({ client }, 'v99.99.99');
    if ((await ask()) !== undefined) return 'found before it was there';
    await client.create(DEFINITIONS, DEFINITION);
    await client.create(REMOVED, LEFT_OVER);
    return (await ask()) === undefined
      ? 'an object of a kind that will be gone, and nothing said'
      : undefined;
  } finally {
    await server.stop();
  }
}

/** Asks the server only once which kinds it serves, as k0s Autopilot does. */
function remembering(client: KubeClient): KubeClient {
  const ask: KubeClient['raw'] = client.raw.bind(client);
  const answers = new Map<string, ReturnType<KubeClient['raw']>>();
  const raw: KubeClient['raw'] = async (path, options) => {
    const answer = answers.get(path) ?? ask(path, options);
    answers.set(path, answer);
    return await answer;
  };
  return Object.assign(client, { raw });
}

export const LEADER_MUTATIONS = [
  mutation(
    {
      weakness: 46,
      without: 'drains side by side',
      complaint: 'nothing but default/of-n1 asked to go in two minutes',
    },
    nodesDrainSideBySide,
    { real: createDrains, mutated: oneAfterTheOther },
  ),
  mutation(
    {
      weakness: 65,
      without: 'the fresh question what the API server serves',
      complaint: 'an object of a kind that will be gone, and nothing said',
    },
    newKindIsFound,
    { real: (client) => client, mutated: remembering },
  ),
];
