/**
 * The environment that all parts of the proof share: one API server, Cluster API's managers, Refit's extension, and a
 * cluster of 3 + 2 Machines.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cluster, startCluster } from '../../../sandbox/cluster/cluster.ts';
import { type Extension, prepareExtension } from '../../../sandbox/cluster/hook-extension.ts';
import { CONTROL_PLANE_LABEL } from '../../../src/api/capi/machine.ts';
import type { Rollouts } from '../../../src/dialects/capi/plan/machine-owners.ts';
import { customResourceDefinitions, nodes } from '../../../src/kube/resources.ts';
import { messageOf } from '../../../src/util/errors.ts';
import { applyManifest } from '../../../tools/controlplane/apply.ts';
import { startControlPlane } from '../../../tools/controlplane/control-plane.ts';
import type { Process } from '../../../tools/controlplane/process.ts';
import type { Checks } from '../checks.ts';
import { until } from '../wait.ts';
import { MachineNodes } from './machines/machine-nodes.ts';
import {
  CLUSTER,
  capiMachines,
  clusterObjects,
  listOf,
  NAMESPACE,
  type ProofMachine,
} from './machines/objects.ts';
import { inWords, isSettled } from './machines/settled.ts';
import type { CertManager } from './managers/cert-manager.ts';
import { Managers } from './managers/managers.ts';
import type { ManagerName, Program } from './managers/programs.ts';

export interface SceneOptions {
  readonly directory: string;
  readonly programs: readonly Program[];
  /** Set only for the part that needs cert-manager. */
  readonly certManager?: CertManager | undefined;
  /** The built command. */
  readonly refit: string;
  /** Which Machines the extension makes one plan. */
  readonly rollouts: Rollouts;
  readonly checks: Checks;
  readonly log: (line: string) => void;
  readonly abort: AbortSignal;
}

/** The versions to which the workers are upgraded, one after the other. The control plane always has a higher version. */
const WORKER_VERSIONS = Array.from({ length: 40 }, (_, index) => `v1.36.${index}+k0s.0`);
export const CONTROL_PLANE_VERSIONS = [
  'v1.36.50+k0s.0',
  'v1.36.51+k0s.0',
  'v1.36.52+k0s.0',
] as const;

/** Where the agents may change files. */
export const CONFIGURABLE = '/etc/in-place';

/** The limit of a wait. It suits a machine with two cores that other programs use too. */
export const PATIENCE_S = 240;

export type Role = 'control plane' | 'workers';

/** The properties of a Machine that must not change in an update in place. */
export interface Identity {
  readonly uid: string;
  readonly node: string;
  readonly nodeUid: string;
}

export class Scene {
  readonly options: SceneOptions;
  readonly kubeconfig: string;
  /** A kubeconfig for the user that the guide documents. This user has only the rights of the extension. */
  readonly extensionKubeconfig: string;
  readonly cluster: Cluster;
  readonly managers: Managers;
  readonly machineNodes: MachineNodes;
  readonly extension: Extension;
  /** The Nodes that get damaged downloads. Parts add names, and remove them again. */
  readonly badDownloads: string[];
  /** The process that serves the hooks. A part that starts another process for the hooks assigns it here. */
  running: Process;
  #version = 0;

  constructor(options: SceneOptions, built: Built) {
    this.options = options;
    this.kubeconfig = built.kubeconfig;
    this.extensionKubeconfig = built.extensionKubeconfig;
    this.cluster = built.cluster;
    this.managers = built.managers;
    this.machineNodes = built.machineNodes;
    this.extension = built.extension;
    this.badDownloads = built.badDownloads;
    this.running = built.running;
  }

  get checks(): Checks {
    return this.options.checks;
  }

  /** Returns a version that the workers have not had yet. */
  nextVersion(): string {
    this.#version++;
    const version = WORKER_VERSIONS[this.#version];
    if (version === undefined)
      throw new Error('the download server has no newer version: add one to WORKER_VERSIONS');
    return version;
  }

  async until(what: string, condition: () => Promise<boolean>): Promise<void> {
    await until(what, PATIENCE_S, condition, this.options.abort).catch(async (error: unknown) => {
      throw new Error([messageOf(error), ...(await this.#machinesInWords())].join('; '), {
        cause: error,
      });
    });
  }

  async apply(...objects: readonly object[]): Promise<void> {
    await applyManifest(this.kubeconfig, listOf(objects));
  }

  async machines(role: Role, cluster = CLUSTER): Promise<ProofMachine[]> {
    const labelSelector = `cluster.x-k8s.io/cluster-name=${cluster}${role === 'workers' ? ',!' : ','}${CONTROL_PLANE_LABEL}`;
    const { items } = await this.cluster.client.listAll(capiMachines, {
      namespace: NAMESPACE,
      labelSelector,
    });
    return items;
  }

  async identities(role: Role): Promise<Map<string, Identity>> {
    const entries = (await this.machines(role)).map(async ({ metadata, status }) => {
      const node = status?.nodeRef?.name ?? '';
      const nodeUid = (await this.cluster.client.get(nodes, node)).metadata.uid ?? '';
      return [metadata.name, { uid: metadata.uid ?? '', node, nodeUid }] as const;
    });
    return new Map(await Promise.all(entries));
  }

  /** Waits until `times` more calls of `hook` by this manager have failed. */
  async failedCalls(manager: ManagerName, hook: string, times: number): Promise<void> {
    const { failed } = await this.managers.calls(manager, hook);
    await this.until(`${times} calls of ${hook} that fail`, async () => {
      const calls = await this.managers.calls(manager, hook);
      return calls.failed >= failed + times;
    });
  }

  /** Waits until all Machines of the role have this version, and no update is running. */
  async settled(
    role: Role,
    version: string,
    count = role === 'workers' ? 2 : 3,
    cluster = CLUSTER,
  ): Promise<void> {
    await this.until(`${count} Machines of the ${role} of ${cluster} at ${version}`, async () => {
      const machines = await this.machines(role, cluster);
      return machines.length === count && machines.every((machine) => isSettled(machine, version));
    });
  }

  /**
   * Returns what is wrong with the Machines and Nodes after an update in place. `before` has their identities before
   * the update.
   */
  async wrongAfter(
    role: Role,
    version: string,
    before: ReadonlyMap<string, Identity>,
  ): Promise<string[]> {
    const after = await this.identities(role);
    const moved = [...before].flatMap(([name, was]) =>
      JSON.stringify(after.get(name)) === JSON.stringify(was)
        ? []
        : [`Machine ${name} or its Node is not the same`],
    );
    const states = [...after].map(async ([name, { node }]) => {
      const { spec, status } = await this.cluster.client.get(nodes, node);
      const runs = await this.machineNodes.host(name).version();
      const reports = status?.nodeInfo?.kubeletVersion;
      return [
        ...(runs === version ? [] : [`the service of ${name} runs ${runs}`]),
        ...(reports === version ? [] : [`the kubelet of ${name} reports ${reports}`]),
        ...(spec?.unschedulable === true ? [`${name} is cordoned`] : []),
      ];
    });
    return [...moved, ...(await Promise.all(states)).flat()];
  }

  /** Returns the number of times that the service of each of these Machines was started. */
  starts(machines: Iterable<string>): Record<string, number> {
    return Object.fromEntries(
      [...machines].map((name) => [name, this.machineNodes.host(name).starts]),
    );
  }

  async startExtension(name: string): Promise<void> {
    this.running = await this.extension.start(name);
  }

  async #machinesInWords(): Promise<string[]> {
    const all = await Promise.all([this.machines('control plane'), this.machines('workers')]).catch(
      () => [],
    );
    return inWords(all.flat());
  }
}

interface Built {
  readonly kubeconfig: string;
  /** A kubeconfig for the user that the guide documents. This user has only the rights of the extension. */
  readonly extensionKubeconfig: string;
  readonly cluster: Cluster;
  readonly managers: Managers;
  readonly machineNodes: MachineNodes;
  readonly extension: Extension;
  readonly badDownloads: string[];
  readonly running: Process;
}

/**
 * Starts everything except a cluster of Cluster API, and resolves when the extension listens. Everything that this
 * function starts is stopped when `started` is disposed.
 */
export async function openScene(
  options: SceneOptions,
  started: AsyncDisposableStack,
): Promise<Scene> {
  const { directory, programs, refit, rollouts, log, abort } = options;
  const plane = await startControlPlane({ audit: true, log, abort });
  started.defer(async () => await plane.stop());
  const kubeconfig = await plane.kubeconfig('admin');
  const badDownloads: string[] = [];
  const cluster = await startCluster({
    plane,
    directory,
    controllers: 0,
    workers: 0,
    version: WORKER_VERSIONS[0] ?? '',
    offers: [...WORKER_VERSIONS, ...CONTROL_PLANE_VERSIONS],
    restartDelayMs: 300,
    breakFor: badDownloads,
    agentFlags: ['--node-configuration', `${CONFIGURABLE},/etc/two-updaters`],
    refit: { agent: [refit], controller: [refit] },
  });
  started.defer(async () => await cluster.stop());
  await applyManifest(
    kubeconfig,
    listOf([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'capi-system' } },
      {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: NAMESPACE, labels: { 'in-place': 'yes' } },
      },
    ]),
  );
  await mkdir(join(directory, 'updater-certs'));
  const extensionKubeconfig = await plane.kubeconfig('capi');
  const extension = await prepareExtension({
    cluster,
    directory,
    kubeconfig: extensionKubeconfig,
    rollouts,
  });
  const managers = new Managers({
    programs,
    directory,
    kubeconfig,
    client: extension.client,
    abort,
  });
  started.defer(async () => await managers.stop());
  await managers.open();
  const running = await extension.start('extension');
  const machineNodes = new MachineNodes({
    cluster,
    management: cluster.client,
    name: CLUSTER,
    log,
  });
  started.defer(async () => await machineNodes.stop());
  return new Scene(options, {
    kubeconfig,
    extensionKubeconfig,
    cluster,
    managers,
    machineNodes,
    extension,
    badDownloads,
    running,
  });
}

/** Creates the cluster. Its Nodes are on the same API server as everything else. */
export async function makeCluster(scene: Scene): Promise<void> {
  const [controlPlane] = CONTROL_PLANE_VERSIONS;
  const [workers = ''] = WORKER_VERSIONS;
  const objects = clusterObjects({
    name: CLUSTER,
    controlPlanes: 3,
    workers: 2,
    versions: { controlPlane, workers },
    kubeconfig: await readFile(scene.kubeconfig, 'utf8'),
  });
  await scene.apply(...objects);
  await scene.settled('control plane', controlPlane);
  await scene.settled('workers', workers);
}

/**
 * Reports whether this API server has Cluster API's own definition of a Machine, and not the simplified definition of
 * the tests.
 */
export async function isRealDefinition(scene: Scene): Promise<boolean> {
  const { metadata } = await scene.cluster.client.get(
    customResourceDefinitions,
    'machines.cluster.x-k8s.io',
  );
  return metadata.annotations?.['controller-gen.kubebuilder.io/version'] !== undefined;
}
