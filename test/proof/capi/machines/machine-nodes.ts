/** Gives each Machine of a cluster what a real provider would: a host with a service, its Node, and Refit's agent. */
import { join } from 'node:path';
import type { Cluster } from '../../../../sandbox/cluster/cluster.ts';
import { keepReady } from '../../../../sandbox/cluster/kubelet.ts';
import { createNode, deleteObjects } from '../../../../sandbox/cluster/objects.ts';
import { type Host, startHost } from '../../../../sandbox/hosts/host.ts';
import { CONTROL_PLANE_LABEL } from '../../../../src/api/capi/machine.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { configMaps, nodes, pods } from '../../../../src/kube/resources.ts';
import { isAlreadyExists } from '../../../../src/kube/status-error.ts';
import { rfc3339, sleep, systemClock } from '../../../../src/util/clock.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import { capiMachines, NAMESPACE, type ProofMachine } from './objects.ts';

export interface MachineNodesOptions {
  /** The cluster that has the Nodes. */
  readonly cluster: Cluster;
  /** A client of the API server that has the Machines. */
  readonly management: KubeClient;
  /** Name of the Cluster. */
  readonly name: string;
  readonly log: (line: string) => void;
}

const LOOK_MS = 250;
const RESTART_DELAY_MS = 300;
const CONTROL_PLANE_ROLE = 'node-role.kubernetes.io/control-plane';
const STATIC_PODS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

export class MachineNodes {
  /** The hosts by the name of their Machine. The Node has the same name. */
  readonly hosts = new Map<string, Host>();
  readonly #options: MachineNodesOptions;
  readonly #end = new AbortController();
  /** The hosts for which the simulated kubelets report. The kubelets read this list each time. */
  readonly #reporting: Host[] = [];
  readonly #kubelets: Disposable;
  readonly #following: Promise<void>;

  constructor(options: MachineNodesOptions) {
    this.#options = options;
    this.#kubelets = keepReady(options.cluster.client, this.#reporting, {
      // The Machines are bootstrapped by kubeadm, and its kubelets report the version of the Machine.
      reported: (version) => version,
    });
    this.#following = this.#follow();
  }

  host(machine: string): Host {
    const host = this.hosts.get(machine);
    if (host === undefined) throw new Error(`Machine ${machine} has no host`);
    return host;
  }

  /** Stops the reports of this Machine's kubelet until the returned function is called. */
  mute(machine: string): () => void {
    const host = this.host(machine);
    this.#reporting.splice(this.#reporting.indexOf(host), 1);
    return () => void this.#reporting.push(host);
  }

  /** Sets the Node to not Ready. This lasts until its kubelet reports something else. */
  async breakNode(machine: string): Promise<void> {
    const { client } = this.#options.cluster;
    const { status } = await client.get(nodes, machine);
    const others = (status?.conditions ?? []).filter(({ type }) => type !== 'Ready');
    const lastTransitionTime = rfc3339(systemClock.now());
    const conditions = [
      ...others,
      { type: 'Ready', status: 'False', reason: 'ProofBreaksIt', lastTransitionTime },
    ];
    await client.patch(
      nodes,
      machine,
      { status: { conditions } },
      { type: 'merge', subresource: 'status' },
    );
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#following;
    this.#kubelets[Symbol.dispose]();
    await Promise.all([...this.hosts.values()].map(async (host) => await host.stop()));
  }

  async #follow(): Promise<void> {
    let told = '';
    while (!this.#end.signal.aborted) {
      try {
        await this.#look();
      } catch (error) {
        // The next attempt may succeed. If the same error repeats, it is logged only once.
        const message = messageOf(error);
        if (message !== told && !this.#end.signal.aborted)
          this.#options.log(`a Machine's Node: ${message}`);
        told = message;
      }
      await sleep(systemClock, LOOK_MS, this.#end.signal).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { management, name: cluster } = this.#options;
    const selector = {
      namespace: NAMESPACE,
      labelSelector: `cluster.x-k8s.io/cluster-name=${cluster}`,
    };
    const { items } = await management.listAll(capiMachines, selector);
    const isNew = ({ metadata, spec }: ProofMachine): boolean =>
      spec.providerID !== undefined &&
      metadata.deletionTimestamp === undefined &&
      !this.hosts.has(metadata.name);
    for (const machine of items.filter(isNew)) await this.#join(machine);
    const there = new Set(items.map(({ metadata }) => metadata.name));
    for (const [name, host] of this.hosts) if (!there.has(name)) await this.#remove(name, host);
  }

  async #join({
    metadata: { name, labels = {} },
    spec: { version, providerID },
  }: ProofMachine): Promise<void> {
    const { client, directory } = this.#options.cluster;
    const isControlPlane = labels[CONTROL_PLANE_LABEL] !== undefined;
    const host = await startHost({
      name,
      role: 'worker',
      directory: join(directory, 'hosts', name),
      version,
      restartDelayMs: RESTART_DELAY_MS,
    });
    this.hosts.set(name, host);
    await createNode(client, name, isControlPlane ? { [CONTROL_PLANE_ROLE]: '' } : {});
    const taints = isControlPlane ? [{ key: CONTROL_PLANE_ROLE, effect: 'NoSchedule' }] : [];
    await client.patch(nodes, name, { spec: { providerID, taints } }, { type: 'merge' });
    const status = { addresses: [{ type: 'InternalIP', address: '127.0.0.1' }] };
    await client.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
    this.#reporting.push(host);
    if (isControlPlane) await this.#playControlPlane(name, version);
    await this.#options.cluster.startAgent(host);
  }

  /**
   * Creates what kubeadm creates and KubeadmControlPlane requires: the configuration of kubeadm, and static pods that
   * are ready.
   */
  async #playControlPlane(node: string, version: string): Promise<void> {
    const { client } = this.#options.cluster;
    const namespace = 'kube-system';
    const configuration = `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: ${version}\n`;
    const config = {
      metadata: { name: 'kubeadm-config' },
      data: { ClusterConfiguration: configuration },
    };
    await client.create(configMaps, config, { namespace }).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
    for (const component of STATIC_PODS) {
      const name = `${component}-${node}`;
      const annotations = {
        'kubernetes.io/config.mirror': 'static',
        'kubernetes.io/config.source': 'file',
      };
      const spec = { nodeName: node, containers: [{ name: component, image: component }] };
      const labels = { component, tier: 'control-plane' };
      await client.create(
        pods,
        { metadata: { name, namespace, annotations, labels }, spec },
        { namespace },
      );
      const conditions = [{ type: 'Ready', status: 'True' }];
      const status = { phase: 'Running', conditions };
      await client.patch(
        pods,
        name,
        { status },
        { type: 'merge', namespace, subresource: 'status' },
      );
    }
  }

  async #remove(name: string, host: Host): Promise<void> {
    const { client, agents } = this.#options.cluster;
    await agents.get(name)?.stop();
    this.hosts.delete(name);
    if (this.#reporting.includes(host)) this.#reporting.splice(this.#reporting.indexOf(host), 1);
    await host.stop();
    await deleteObjects(client, name);
    for (const component of STATIC_PODS)
      await client
        .delete(pods, `${component}-${name}`, { namespace: 'kube-system', gracePeriodSeconds: 0 })
        .catch(() => undefined);
  }
}
