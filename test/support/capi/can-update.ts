/** Calls the hooks, for tests, to find out whether a Machine can be updated in place. Several updaters may answer. */
import { fitting } from '../../../sandbox/cluster/hook-schema.ts';
import type { CanUpdateResponse, Claim, Triple } from '../../../src/api/capi/hooks.ts';
import { type Machine, machineDeployments, machines } from '../../../src/api/capi/machine.ts';
import { type Updater, updaterSets } from '../../../src/api/refit/updater-set.ts';
import {
  changesBetween,
  MACHINE_SHAPE,
  nameOf,
} from '../../../src/dialects/capi/hooks/can-update.ts';
import { type CanHook, canUpdate } from '../../../src/dialects/capi/hooks/updaters/answer-can.ts';
import { applyPatches } from '../../../src/dialects/capi/hooks/updaters/hook-patch.ts';
import type { UpdaterAnswer } from '../../../src/dialects/capi/hooks/updaters/updater-client.ts';
import type { OwnerWait } from '../../../src/dialects/capi/plan/owner-waits.ts';
import type { NodeCluster } from '../../../src/dialects/capi/plan/progress.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { encodePresence } from '../../../src/signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../../src/signal/names.ts';
import { type Logger, silentLogger } from '../../../src/util/log.ts';
import { untilAborted } from '../../../src/util/waits.ts';
import { MemoryApi } from '../builders/memory-api.ts';
import { buildNode } from '../builders/nodes.ts';
import { buildUpdater, buildUpdaterSet } from '../builders/updater-sets.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { later, T0 } from '../clock/times.ts';
import { buildNodeCluster } from './node-cluster.ts';
import { buildTriple, mergePatch } from './triples.ts';

export const presence = {
  [AGENT_ANNOTATION]: encodePresence({ version: '1.0.0', since: later(0) }),
};

type Answer = Claim | UpdaterAnswer | Error | 'nothing';

interface Asked {
  readonly updater: string;
  readonly current: Triple;
}

export class Scene {
  readonly api = new MemoryApi();
  readonly asked: Asked[] = [];
  log: Logger = silentLogger;
  /** What the owner of the Machines waits for. */
  ownerWait: OwnerWait | undefined;
  readonly #answers: Readonly<Record<string, Answer>>;

  constructor(
    answers: Readonly<Record<string, Answer>>,
    updaters: readonly Updater[],
    spec: object = {},
  ) {
    this.#answers = answers;
    this.api.put(updaterSets, buildUpdaterSet('all', updaters, spec));
    this.api.put(machines, {
      metadata: { name: 'm1', namespace: 'default' },
      status: { nodeRef: { name: 'n1' } },
    });
    this.api.put(nodes, {
      ...buildNode('n1', { annotations: presence }),
      status: { nodeInfo: { kubeletVersion: 'v1.35.0' } },
    });
    this.api.put(machineDeployments, { metadata: { name: 'md', namespace: 'default' } });
  }

  /** The Nodes of each cluster. Here every cluster has the same Nodes. */
  readonly clusters = new Map<string | undefined, NodeCluster>();

  clusterOf(name: string | undefined): NodeCluster {
    return this.clusters.getOrInsertComputed(name, () => buildNodeCluster(this.api.client));
  }

  async ask(
    hook: CanHook,
    current: Triple,
    desired: Triple,
    settings = {},
    withinMs = 60_000,
  ): Promise<CanUpdateResponse> {
    const parts = {
      abort: new AbortController().signal,
      management: this.api.client,
      clusterOf: ({ spec }: Machine) => this.clusterOf(spec?.clusterName),
      clock: new FakeClock(T0),
      log: this.log,
      ownerWait: this.ownerWait,
      callUpdater: async ({ name }: Updater, _hook: string, body: object, abort: AbortSignal) => {
        const { current: from } = body as { current: Triple };
        this.asked.push({ updater: name, current: from });
        const answer = this.#answers[name] ?? {};
        if (answer === 'nothing')
          return await untilAborted(Promise.withResolvers<never>().promise, abort);
        if (answer instanceof Error) return await Promise.reject(answer);
        return { status: 'Success' as const, ...answer };
      },
    };
    const request = { current, desired, settings };
    const answer = await canUpdate(parts, hook, request, withinMs);
    return fitting(`${hook}Response`, answer);
  }
}

export const FILES = [{ path: '/etc/demo', content: 'two' }];

export const current = buildTriple({
  machine: { version: 'v1.35.0', providerID: 'x' },
  infra: { cpu: 2, disk: { size: 1 } },
  bootstrap: { format: 'cloud-config' },
});

export const desired = buildTriple({
  machine: { version: 'v1.35.1', providerID: 'x' },
  infra: { cpu: 4 },
  bootstrap: { format: 'cloud-config', files: FILES },
});

export const filesPatch = { bootstrapConfigPatch: mergePatch({ spec: { files: FILES } }) };

export const REFIT: Updater = { name: 'refit', refit: {} };

export const FILER = buildUpdater('filer');

export function leftBy(answer: CanUpdateResponse, from = current, to = desired): string[] {
  return changesBetween(MACHINE_SHAPE, applyPatches(MACHINE_SHAPE, from, answer), to).map(nameOf);
}
