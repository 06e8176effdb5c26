/** A Machine, its Node and the leader, with an in-memory API server, for tests of UpdateMachine. */

import { fitting } from '../../../sandbox/cluster/hook-schema.ts';
import { identityOf, referencesOf } from '../../../sandbox/cluster/machines.ts';
import type { UpdateMachineRequest, UpdateMachineResponse } from '../../../src/api/capi/hooks.ts';
import { CONTROL_PLANE_LABEL, machines } from '../../../src/api/capi/machine.ts';
import { upgradePolicies } from '../../../src/api/kinds.ts';
import {
  type StepParts,
  updateInSteps,
} from '../../../src/dialects/capi/hooks/updaters/update-steps.ts';
import { capi } from '../../../src/dialects/capi/plan/capi-dialect.ts';
import type { MachineOwners } from '../../../src/dialects/capi/plan/machine-owners.ts';
import { machineRules } from '../../../src/dialects/capi/plan/machine-rules.ts';
import { stuckMachines } from '../../../src/dialects/capi/plan/stuck-machines.ts';
import { createReconciler } from '../../../src/engine/loop.ts';
import type { EndpointHealth } from '../../../src/engine/model/snapshot.ts';
import { policyOfPlan } from '../../../src/engine/policy/choose-policy.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { viewsOf } from '../../../src/engine/snapshot/world.ts';
import { CONTROL_PLANE } from '../../../src/kube/control-plane-label.ts';
import { type Node, nodes } from '../../../src/kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../../src/signal/annotations.ts';
import { silentLogger } from '../../../src/util/log.ts';
import { knowledgeOf } from '../builders/knowledge.ts';
import { OWN_PLANS } from '../builders/machine-updates.ts';
import { MemoryApi } from '../builders/memory-api.ts';
import { buildNode, withKubelet } from '../builders/nodes.ts';
import { buildPolicy } from '../builders/rollout-policies.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { T0 } from '../clock/times.ts';

export const POLICY = buildPolicy();

export class MachineScene {
  readonly api = new MemoryApi();
  readonly clock = new FakeClock(T0);
  health: readonly EndpointHealth[] = [];
  policy: RolloutPolicy = POLICY;
  /** The reason why the leader does not continue; undefined if the leader works. */
  idle: string | undefined;
  /** Text of every checksum file. */
  checksum = 'ab'.repeat(32);
  readonly read: string[] = [];
  /** Events on Machines. */
  readonly told: string[] = [];
  callUpdater: StepParts['callUpdater'] = async () =>
    await Promise.reject(new Error('there is no updater'));
  /** The limit is half an hour without any report. */
  owners: MachineOwners = OWN_PLANS;
  readonly #replaceStuck = stuckMachines(this.api.client, 30 * 60_000, this.clock);
  readonly rulesOf = machineRules(this.api.client, silentLogger);
  readonly #policies = this.api.view(upgradePolicies);
  readonly #seen = this.api.view(nodes);
  readonly #view = this.api.view(nodes);
  /** The reconciler of a leader that has watched the Nodes from the beginning. */
  readonly #reconcile = createReconciler({
    dialect: capi,
    client: this.api.client,
    ...knowledgeOf(viewsOf([[nodes, this.#view]])),
    plans: this.#view,
    policyFor: () => this.policy,
    clock: this.clock,
    prober: { askControlPlane: async () => await Promise.resolve(this.health) },
  });

  constructor(names: readonly string[], role: 'worker' | 'controller' = 'worker') {
    for (const name of names) {
      const identity = identityOf({ name: `m-${name}`, node: name });
      const nodeLabels = role === 'controller' ? { [CONTROL_PLANE]: '' } : {};
      const labels = role === 'controller' ? { [CONTROL_PLANE_LABEL]: '' } : {};
      this.api.put(machines, {
        kind: 'Machine',
        metadata: { name: `m-${name}`, namespace: 'default', labels },
        spec: {
          clusterName: 'stand-in',
          version: 'v1.35.1',
          ...referencesOf(`m-${name}`),
          ...identity.spec,
        },
        status: { nodeRef: { name } },
      });
      this.api.put(
        nodes,
        withKubelet(
          { ...buildNode(name, { ...identity.metadata, labels: nodeLabels }), spec: identity.spec },
          'v1.35.0',
        ),
      );
    }
  }

  node(name: string): Node {
    return this.api.read(nodes, name);
  }

  async ask(
    name: string,
    version = 'v1.35.1',
    settings: Record<string, string> = {},
  ): Promise<UpdateMachineResponse> {
    const object = (kind: string) => ({
      kind,
      metadata: { name: `m-${name}`, namespace: 'default' },
    });
    const machine = { ...object('Machine'), spec: { version } };
    const request: UpdateMachineRequest = {
      settings,
      desired: { machine, infrastructureMachine: object('DevMachine') },
    };
    this.#policies.catchUp();
    this.#seen.catchUp();
    const answer = await updateInSteps(this.parts(), request);
    return fitting('UpdateMachineResponse', answer);
  }

  /** Reconciles one Node as the leader, with a view that is up to date. */
  async lead(name: string): Promise<void> {
    this.#view.catchUp();
    await this.#reconcile(name);
  }

  /** Writes a status on the Node, as its agent does. */
  report(name: string, status: string): void {
    this.api.change(nodes, name, (node) => {
      const signal = decodeSignal(node.metadata.annotations);
      if (!signal) throw new Error(`${name} carries no signal`);
      const timestamp = new Date(this.clock.now()).toISOString();
      const annotations = {
        ...node.metadata.annotations,
        ...encodeSignal({ ...signal, status: { status, timestamp } }),
      };
      return { ...node, metadata: { ...node.metadata, annotations } };
    });
  }

  kubelet(name: string, version: string): void {
    this.api.change(nodes, name, (node) => withKubelet(node, version));
  }

  want(name: string, version: string): void {
    this.api.change(machines, `m-${name}`, (machine) => ({
      ...machine,
      spec: { ...machine.spec, version },
    }));
  }

  parts(): StepParts {
    return {
      abort: new AbortController().signal,
      management: this.api.client,
      source: {
        url: 'https://example.com/{version}/{os}-{arch}/k0s',
        checksumUrl: 'https://example.com/{version}.sha256',
      },
      readText: async (url) => {
        this.read.push(url);
        return await Promise.resolve(this.checksum);
      },
      callUpdater: this.callUpdater,
      log: silentLogger,
      replaceStuck: this.#replaceStuck,
      owners: this.owners,
      tell: async (_asked, { type, reason, message }) => {
        this.told.push(`${type} ${reason}: ${message}`);
        return await Promise.resolve();
      },
      rulesOf: this.rulesOf,
      clusterOf: () => ({
        workload: this.api.client,
        seenNode: (name) => this.#seen.get(name),
        seenNodes: () => this.#seen.list(),
        whyIdle: () => this.idle,
        askApiServers: async () => await Promise.resolve(this.health),
        policyFor: (node) => policyOfPlan(capi, this.#policies.list(), node, this.policy),
      }),
      clock: this.clock,
    };
  }
}
