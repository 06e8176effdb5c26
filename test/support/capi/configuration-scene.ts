/** A Machine, its Node and an UpdaterSet in memory, for tests of changes to the configuration of a node. */

import { fitting } from '../../../sandbox/cluster/hook-schema.ts';
import { identityOf } from '../../../sandbox/cluster/machines.ts';
import type { CanUpdateResponse, UpdateMachineResponse } from '../../../src/api/capi/hooks.ts';
import { machineDeployments, machines, SET_LABELS } from '../../../src/api/capi/machine.ts';
import { type Updater, updaterSets } from '../../../src/api/refit/updater-set.ts';
import {
  changesBetween,
  MACHINE_SHAPE,
  nameOf,
} from '../../../src/dialects/capi/hooks/can-update.ts';
import { canUpdate } from '../../../src/dialects/capi/hooks/updaters/answer-can.ts';
import { applyPatches } from '../../../src/dialects/capi/hooks/updaters/hook-patch.ts';
import { updateInSteps } from '../../../src/dialects/capi/hooks/updaters/update-steps.ts';
import type { CallUpdater } from '../../../src/dialects/capi/hooks/updaters/updater-client.ts';
import { annotated, type Node, nodes } from '../../../src/kube/resources.ts';
import { encodePresence } from '../../../src/signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../../src/signal/names.ts';
import {
  CONFIGURATION_REPORT_ANNOTATION,
  configurationRequestOn,
} from '../../../src/signal/node-configuration.ts';
import type { Json } from '../../../src/util/json.ts';
import { silentLogger } from '../../../src/util/log.ts';
import { OWN_PLANS } from '../builders/machine-updates.ts';
import { MemoryApi } from '../builders/memory-api.ts';
import { buildUpdaterSet } from '../builders/updater-sets.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { later, T0 } from '../clock/times.ts';
import { buildNodeCluster } from './node-cluster.ts';
import { buildTriple } from './triples.ts';

export const OWN: Updater = { name: 'configuration', nodeConfiguration: {} };
export const REFIT: Updater = { name: 'refit', refit: {} };
export const ALLOWED = ['/etc/demo', 'user:alice', 'kubelet'];
export const VERSION = 'v1.35.0';

/** A Machine with its Node, and what the updaters of an UpdaterSet answer about changes of its KubeadmConfig. */
export class ConfigurationScene {
  readonly api = new MemoryApi();
  readonly clock = new FakeClock(T0);
  callUpdater: CallUpdater | undefined = async () =>
    await Promise.reject(new Error('there is no other updater'));

  constructor(updaters: readonly Updater[] = [OWN, REFIT], allowed: readonly string[] = ALLOWED) {
    this.api.put(updaterSets, buildUpdaterSet('all', updaters));
    const { metadata, spec } = identityOf({ name: 'm1', node: 'n1' });
    const labels = { [SET_LABELS.deployment]: 'md', [SET_LABELS.hash]: '1' };
    this.api.put(machineDeployments, { metadata: { name: 'md', namespace: 'default' } });
    this.api.put(machines, {
      metadata: { name: 'm1', namespace: 'default', labels },
      spec: { clusterName: 'stand-in', version: VERSION, ...spec },
      status: { nodeRef: { name: 'n1' } },
    });
    this.api.put(nodes, {
      metadata: { name: 'n1', uid: 'u', annotations: metadata.annotations },
      spec,
    });
    this.allow(allowed);
  }

  /** Sets the list of what the agent may change, as the agent reports it. */
  allow(configurable: readonly string[]): void {
    this.note(AGENT_ANNOTATION, encodePresence({ version: '1', since: later(0), configurable }));
  }

  note(name: string, value: string): void {
    this.api.change(nodes, 'n1', (node) => annotated(node, { [name]: value }));
  }

  get node(): Node {
    return this.api.read(nodes, 'n1');
  }

  get #parts() {
    const cluster = buildNodeCluster(this.api.client);
    return {
      management: this.api.client,
      clusterOf: () => cluster,
      clock: this.clock,
      abort: new AbortController().signal,
      log: silentLogger,
      callUpdater: this.callUpdater,
      source: { url: 'https://example.com' },
      readText: async () => await Promise.reject(new Error('nothing to read')),
      replaceStuck: async () => await Promise.resolve(''),
      owners: OWN_PLANS,
      tell: async () => await Promise.resolve(),
      rulesOf: async () => await Promise.resolve({ drainSeconds: 0 }),
    };
  }

  async can(from: Json, to: Json, version = VERSION): Promise<CanUpdateResponse> {
    const current = buildTriple({ machine: { version: VERSION }, bootstrap: from });
    const desired = buildTriple({ machine: { version }, bootstrap: to });
    const answer = await canUpdate(
      { ...this.#parts, ownerWait: undefined },
      'CanUpdateMachine',
      { current, desired },
      60_000,
    );
    return fitting('CanUpdateMachineResponse', answer);
  }

  /**
   * Returns the changes that are not covered. If all changes are covered, the patched objects must equal the desired
   * objects, as Cluster API requires.
   */
  async left(from: Json, to: Json): Promise<string[]> {
    const answer = await this.can(from, to);
    const [, left = ''] = /; not covered: (.*)$/.exec(answer.message ?? '') ?? [];
    if (left !== 'nothing') return left.split(', ');
    const current = buildTriple({ bootstrap: from });
    const desired = buildTriple({ bootstrap: to });
    return changesBetween(MACHINE_SHAPE, applyPatches(MACHINE_SHAPE, current, answer), desired).map(
      nameOf,
    );
  }

  async update(bootstrap: Json): Promise<UpdateMachineResponse> {
    const { machine, infrastructureMachine, bootstrapConfig } = buildTriple({
      machine: { version: VERSION },
      bootstrap,
    });
    if (!machine || !infrastructureMachine) throw new Error('there is no Machine');
    const answer = await updateInSteps(this.#parts, {
      desired: { machine, infrastructureMachine, bootstrapConfig },
    });
    return fitting('UpdateMachineResponse', answer);
  }

  report(more: object = {}): void {
    this.note(
      CONFIGURATION_REPORT_ANNOTATION,
      JSON.stringify({ uid: configurationRequestOn(this.node)?.uid, ...more }),
    );
  }
}
