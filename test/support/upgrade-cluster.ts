/** An API server in memory and a server of files, on which tests run `refit upgrade`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { cattlePlans, nodeRollouts } from '../../src/api/kinds.ts';
import type { UpgradeFlags } from '../../src/cli/contract/upgrade-way.ts';
import { plainOutput } from '../../src/cli/output.ts';
import { upgrade } from '../../src/cli/upgrade/upgrade-command.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { type KubeObject, namespaces, nodes, type Resource } from '../../src/kube/resources.ts';
import { describeProblem, ifFound, ifNew } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { systemClock } from '../../src/util/clock.ts';
import { startStubServer } from '../faults/stub-server.ts';
import { buildControlNode, buildNode } from './builders/nodes.ts';

export const NAMESPACE = 'system-upgrade';
/** The options of a patch that changes the status of an object. */
export const STATUS = { type: 'merge', subresource: 'status' } as const;

export interface Outcome {
  readonly said: string;
  readonly error: string;
}

/** Runs `refit upgrade` with `--yes`. Resolves with its output and its error, as they are printed. */
export async function runUpgrade(
  kubeconfig: string,
  version: string,
  flags: Partial<UpgradeFlags>,
): Promise<Outcome> {
  let said = '';
  const write = (piece: string): void => {
    said += piece;
  };
  const output = { ...plainOutput, write };
  const abort = new AbortController().signal;
  const parts = { modules: MODULES, clock: systemClock, output, abort, environment: {} };
  const error = await upgrade(
    version,
    { kubeconfig, apiPort: 6443, yes: true, ...flags },
    parts,
  ).then(
    () => '',
    (failure: unknown) => describeProblem(failure).line,
  );
  return { said, error };
}

export class UpgradeCluster implements AsyncDisposable {
  /** What the server of files has, by path. */
  readonly files: Map<string, string>;
  /** The paths at which the server of files fails. */
  readonly broken: Set<string>;
  readonly client: KubeClient;
  readonly kubeconfig: string;
  /** The address of the server of files. */
  readonly place: string;
  readonly #things: AsyncDisposableStack;

  private constructor(
    parts: Pick<UpgradeCluster, 'client' | 'kubeconfig' | 'place' | 'files' | 'broken'>,
    things: AsyncDisposableStack,
  ) {
    this.files = parts.files;
    this.broken = parts.broken;
    this.client = parts.client;
    this.kubeconfig = parts.kubeconfig;
    this.place = parts.place;
    this.#things = things;
  }

  static async start(): Promise<UpgradeCluster> {
    const things = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'refit-upgrade-'));
    things.defer(async () => await rm(folder, { recursive: true }));
    const plane = await startSandboxPlane(folder);
    things.defer(async () => await plane.stop());
    const kubeconfig = await plane.kubeconfig('admin');
    const client = things.use(createClient(await loadClusterConfig({ path: kubeconfig })));
    await installDefinitions(client, systemClock);
    await ifNew(client.create(namespaces, { metadata: { name: NAMESPACE } }));
    const files = new Map<string, string>();
    const broken = new Set<string>();
    const server = things.use(
      await startStubServer(({ url }, response) => {
        const body = files.get(url);
        const missing = broken.has(url) ? 503 : 404;
        response.writeHead(body === undefined ? missing : 200).end(body, 'latin1');
      }),
    );
    const place = `http://127.0.0.1:${server.port}`;
    return new UpgradeCluster({ client, kubeconfig, place, files, broken }, things);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#things.disposeAsync();
  }

  /** Removes all nodes, Plans, records of runs and files. */
  async clear(): Promise<void> {
    this.files.clear();
    this.broken.clear();
    for (const resource of [plans, nodes, controlNodes] as readonly Resource[])
      for (const { metadata } of (await this.client.listAll(resource)).items)
        await ifFound(this.client.delete(resource, metadata.name));
    for (const resource of [cattlePlans, nodeRollouts] as readonly Resource[])
      for (const { metadata } of (await this.client.listAll(resource)).items)
        await ifFound(this.client.delete(resource, metadata.name, { namespace: NAMESPACE }));
  }

  async putNode(name: string, kubeletVersion: string, labels = {}, annotations = {}) {
    const named = { 'kubernetes.io/hostname': name, ...labels };
    const node = buildNode(name, { labels: named, annotations });
    await this.#put(nodes, node, { nodeInfo: { kubeletVersion } });
  }

  async putController(name: string, k0sVersion: string): Promise<void> {
    await this.#put(controlNodes, buildControlNode(name), { k0sVersion });
  }

  async #put(resource: Resource, object: KubeObject, status: object): Promise<void> {
    const { uid: _uid, resourceVersion: _version, ...metadata } = object.metadata;
    await this.client.create(resource, { ...object, metadata });
    await this.client.patch(resource, metadata.name, { status }, STATUS);
  }

  /** Runs `refit upgrade`. Resolves with its output and its error, each in one line. */
  async upgrading(version: string, flags: Partial<UpgradeFlags> = {}): Promise<Outcome> {
    const { said, error } = await runUpgrade(this.kubeconfig, version, { ready: false, ...flags });
    return { said: said.replaceAll(/\s+/g, ' '), error: error.replaceAll(/\s+/g, ' ') };
  }
}
