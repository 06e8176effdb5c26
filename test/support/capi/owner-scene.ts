/** The Machines of one owner, the leader, and the calls of Cluster API, with an in-memory API server. */
import { machines } from '../../../src/api/capi/machine.ts';
import { groupOf, representing } from '../../../src/dialects/capi/plan/machine-groups.ts';
import {
  type MachineUpdate,
  recordOf,
  updateOn,
  withRequest,
} from '../../../src/dialects/capi/plan/machine-update.ts';
import { sealed } from '../../../src/dialects/capi/plan/owner-controls.ts';
import { ownerWaits } from '../../../src/dialects/capi/plan/owner-waits.ts';
import type { RememberedRun } from '../../../src/dialects/capi/plan/remembered-runs.ts';
import { annotated, nodes } from '../../../src/kube/resources.ts';
import { decodeSignal } from '../../../src/signal/annotations.ts';
import { MachineScene } from './machine-scene.ts';

export const OWNER = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineDeployment',
  name: 'md',
  uid: 'md-uid',
};
export const NAMES = ['w1', 'w2', 'w3', 'w4'];

export class OwnerScene extends MachineScene {
  readonly #deleted = new Set<string>();

  readonly role: 'worker' | 'controller';
  /** What the NodeRollout of the owner says. */
  lastRun: RememberedRun | undefined;

  constructor(role: 'worker' | 'controller' = 'worker') {
    super(NAMES, role);
    this.role = role;
    this.owners = {
      of: async () => await Promise.resolve(OWNER),
      nodesOf: async () => await Promise.resolve(NAMES),
      lastRunOf: async () => await Promise.resolve(this.lastRun),
    };
  }

  /** The names of the Nodes that represent plans. */
  plans(): string[] {
    const existing = NAMES.filter((name) => !this.#deleted.has(name));
    const all = existing
      .map((name) => this.node(name))
      .filter((node) => updateOn(node) !== undefined);
    return representing(all).map(({ metadata }) => metadata.name);
  }

  /** Lets the leader carry out everything that it can do now. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) for (const name of this.plans()) await this.lead(name);
  }

  async chosen(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      await this.ask(name);
      await this.clock.advance(10);
    }
    await this.settle();
  }

  started(): string[] {
    return NAMES.filter(
      (name) =>
        !this.#deleted.has(name) &&
        decodeSignal(this.node(name).metadata.annotations) !== undefined,
    );
  }

  async finish(name: string): Promise<void> {
    this.kubelet(name, 'v1.35.1');
    this.report(name, 'Completed');
    await this.settle();
  }

  async fail(name: string): Promise<void> {
    this.report(name, 'FailedDownload');
    await this.settle();
  }

  stateOf(name: string): string | undefined {
    const update = updateOn(this.node(name));
    return update && recordOf(this.node(name), update)?.state;
  }

  /** The phase of the plan, as this Node has recorded it. */
  phaseOf(name: string): string | undefined {
    const update = updateOn(this.node(name));
    return update && recordOf(this.node(name), update)?.phase;
  }

  /** The Nodes of the plan that Cluster API has not chosen yet. */
  waiting(name: string): string[] | undefined {
    const all = NAMES.map((each) => this.node(each));
    return groupOf(all, this.node(name))?.unchosen.map(({ metadata }) => metadata.name);
  }

  label(name: string, labels: Readonly<Record<string, string>>): void {
    this.api.change(nodes, name, (node) => ({
      ...node,
      metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...labels } },
    }));
  }

  /** Writes annotations as kubectl does, or as the kubelet of the Node can do. */
  annotate(name: string, annotations: Readonly<Record<string, string>>): void {
    this.api.change(nodes, name, (node) => annotated(node, annotations));
  }

  /** Writes what people ask of the plan that the Node represents, as the commands of Refit do. */
  control(name: string, annotations: Readonly<Record<string, string>>): void {
    this.api.change(nodes, name, (node) => sealed(annotated(node, annotations), node));
  }

  /** Changes the request on a Node as if another replica had written it so. */
  request(name: string, change: Partial<MachineUpdate>): void {
    this.api.change(nodes, name, (node) => {
      const update = updateOn(node);
      return update ? withRequest(node, { ...update, ...change }) : node;
    });
  }

  /** Changes the request on a Node, as its kubelet can do: without the seal, which a kubelet cannot write. */
  forge(name: string, change: Partial<MachineUpdate>): void {
    this.api.change(nodes, name, (node) => {
      const update = updateOn(node);
      if (!update) return node;
      const { annotations } = withRequest(node, { ...update, ...change }).metadata;
      return annotated(node, annotations ?? {});
    });
  }

  /** Sets the drain timeout of a Machine. */
  ruled(name: string, { drainSeconds }: { readonly drainSeconds: number }): void {
    this.api.change(machines, `m-${name}`, (machine) => ({
      ...machine,
      spec: { ...machine.spec, deletion: { nodeDrainTimeoutSeconds: drainSeconds } },
    }));
  }

  delete(name: string): void {
    this.api.remove(nodes, name);
    this.#deleted.add(name);
  }

  /** What Cluster API is answered before it marks one of these Machines; undefined if nothing waits. */
  async waitBefore(names: readonly string[], version = 'v1.35.1'): Promise<string | undefined> {
    const wait = ownerWaits(this.parts());
    const asked = names.map((name) => ({
      machine: this.api.read(machines, `m-${name}`),
      node: this.node(name),
      version,
      role: this.role,
    }));
    return await wait(asked, new AbortController().signal);
  }
}
