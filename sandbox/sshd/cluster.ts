/** A stand-in kubeadm cluster: hosts behind SSH servers, their Nodes, and a manifest that names them all. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { PLACE } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  type Condition,
  type ConfigMap,
  configMaps,
  leases,
  namespaces,
  nodes,
  pods,
} from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import type { Validity } from '../../tools/controlplane/certs.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { createMissing } from '../cluster/objects.ts';
import { ADDRESS, makeKey, type SshServer, type StartServer } from './server.ts';
import { answerHosts } from './stand-in.ts';
import { COMPONENTS, createStandInHost, ETCD, type StandInHost } from './stand-in-host.ts';

export interface SshClusterOptions {
  /** Everything of the hosts is kept below; the caller removes it. */
  readonly directory: string;
  readonly controlPlane: number;
  readonly workers: number;
  readonly version: string;
  readonly offers: readonly string[];
  /** Of the API server that every control-plane host stands in front of. */
  readonly url: string;
  readonly adminKubeconfig: string;
  /** What Refit uses. */
  readonly kubeconfig: string;
  readonly startServer: StartServer;
  /** Fields of it in ConfigMap kubelet-config. */
  readonly kubeletConfiguration?: object;
  /** True where kwok is to play pods on the Nodes. */
  readonly played?: boolean;
  readonly certificates?: Validity | undefined;
}

export interface SshCluster {
  readonly hosts: readonly StandInHost[];
  readonly client: KubeClient;
  /** Port of the API servers on the control-plane hosts' own addresses. */
  readonly apiPort: number;
  readonly servers: ReadonlyMap<string, SshServer>;
  host(name: string): StandInHost;
  /** Writes a manifest and gives its path; `change` may spoil it. */
  /** The API server behind the first control-plane host, which is away while its manifest is. */
  readonly firstServer: string;
  manifest(version: string, change?: (manifest: Record<string, unknown>) => void): Promise<string>;
  stop(): Promise<void>;
}

/** Well within the 50 s after which the controller manager calls a silent node NotReady. */
const HEARTBEAT_MS = 10_000;

export async function startSshCluster(options: SshClusterOptions): Promise<SshCluster> {
  await using started = new AsyncDisposableStack();
  const { directory, version, offers, certificates, adminKubeconfig: kubeconfig } = options;
  await mkdir(directory, { recursive: true });
  const identity = join(directory, 'identity');
  await makeKey(identity);
  const client = createClient(await loadClusterConfig({ path: options.adminKubeconfig }));
  started.defer(() => client.close());
  await furnish(client, version, options.kubeletConfiguration ?? {});
  const apiPort = await freePort();
  const socket = join(directory, 'programs');
  started.use(await answerHosts(socket));
  const names = [...series('cp', options.controlPlane), ...series('w', options.workers)];
  const hosts: StandInHost[] = [];
  const servers = new Map<string, SshServer>();
  for (const [index, name] of names.entries()) {
    const role = index < options.controlPlane ? 'controlPlane' : 'worker';
    const root = join(directory, name, 'root');
    const host = await createStandInHost({
      name,
      role,
      root,
      version,
      offers,
      kubeconfig,
      certificates,
      socket,
    });
    hosts.push(host);
    const server = await options.startServer({
      host,
      directory: join(directory, name),
      clientKey: `${identity}.pub`,
    });
    started.defer(async () => await server.stop());
    servers.set(name, server);
    const address = `127.0.0.${11 + index}`;
    await registerNode(client, host, { version, address, played: options.played === true });
    if (role === 'controlPlane') await registerStaticPods(client, name, version);
    if (role === 'controlPlane')
      started.use(await passThrough(host, address, apiPort, new URL(options.url)));
  }
  started.use(keepReady(client, hosts));
  const knownHostsFile = join(directory, 'known_hosts');
  await writeFile(knownHostsFile, [...servers.values()].map(({ knownHost }) => knownHost).join(''));
  const everything = started.move();
  let count = 0;
  return {
    hosts,
    client,
    apiPort,
    servers,
    firstServer: `https://127.0.0.11:${apiPort}`,
    host(name) {
      const found = hosts.find((each) => each.name === name);
      if (!found) throw new Error(`there is no host ${name}`);
      return found;
    },
    async manifest(target, change = () => undefined) {
      const path = join(directory, `cluster-${++count}.yaml`);
      const manifest = {
        version: target,
        kubeconfig: options.kubeconfig,
        hosts: hosts.map(({ name, role }) => ({
          name,
          role,
          address: ADDRESS,
          port: servers.get(name)?.port,
        })),
        binaries: {
          kubeadm: { path: `/opt/kubernetes/${target}/kubeadm` },
          kubelet: { path: `/opt/kubernetes/${target}/kubelet` },
        },
        ssh: { identityFile: 'identity', knownHostsFile: 'known_hosts' },
      };
      change(manifest);
      await writeFile(path, stringify(manifest));
      return path;
    },
    async stop() {
      for (const { name, role } of hosts) {
        await gone(client.delete(nodes, name));
        for (const each of role === 'controlPlane' ? COMPONENTS : [])
          await gone(
            client.delete(pods, `${each}-${name}`, {
              namespace: PLACE.namespace,
              gracePeriodSeconds: 0,
            }),
          );
      }
      for (const name of [PLACE.name, 'kubeadm-config', 'kubelet-config'])
        await gone(client.delete(configMaps, name, { namespace: PLACE.namespace }));
      await gone(client.delete(leases, PLACE.name, { namespace: PLACE.namespace }));
      await everything.disposeAsync();
    },
  };
}

/** What `kubeadm init` leaves in the API, as far as an upgrade looks at it. */
async function furnish(
  client: KubeClient,
  version: string,
  kubeletConfiguration: object,
): Promise<void> {
  const { namespace } = PLACE;
  await createMissing(client, namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace },
  });
  const configuration = {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'ClusterConfiguration',
    kubernetesVersion: version,
    networking: { serviceSubnet: '10.96.0.0/12' },
  };
  const kubelet = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    ...kubeletConfiguration,
  };
  for (const [name, data] of [
    ['kubeadm-config', { ClusterConfiguration: stringify(configuration) }],
    ['kubelet-config', { kubelet: stringify(kubelet) }],
  ] as const) {
    const config: ConfigMap = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace },
      data,
    };
    await client.create(configMaps, config, { namespace });
  }
}

/** Ready from the start: kwok would make it so in its own way, with another address. */
async function registerNode(
  client: KubeClient,
  { name, role }: StandInHost,
  { version, address, played }: { version: string; address: string; played: boolean },
): Promise<void> {
  const { metadata, status } = simulatedNode(name);
  const { annotations, labels } = metadata;
  const roleLabels = role === 'controlPlane' ? { 'node-role.kubernetes.io/control-plane': '' } : {};
  const room = { cpu: '8', memory: '16Gi', pods: '110' };
  const space = { capacity: room, allocatable: room };
  await client.create(nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { ...labels, ...roleLabels }, ...(played ? { annotations } : {}) },
    status: {
      nodeInfo: { ...status?.nodeInfo, kubeletVersion: version },
      addresses: [{ type: 'InternalIP', address }],
      conditions: [readyNow()],
      ...space,
    },
  });
}

/** As a kubelet does for each manifest. */
async function registerStaticPods(
  client: KubeClient,
  node: string,
  version: string,
): Promise<void> {
  const { namespace } = PLACE;
  for (const component of COMPONENTS) {
    const image = `registry.local:5000/${component}:${component === 'etcd' ? ETCD : version}`;
    const name = `${component}-${node}`;
    const labels = { component, tier: 'control-plane' };
    const metadata = {
      name,
      namespace,
      labels,
      annotations: { 'kubernetes.io/config.mirror': '1' },
    };
    const spec = { nodeName: node, hostNetwork: true, containers: [{ name: component, image }] };
    await client.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec }, { namespace });
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await client.patch(pods, name, { status }, { namespace, type: 'merge', subresource: 'status' });
  }
}

async function reportReady(client: KubeClient, name: string): Promise<void> {
  const status = { conditions: [readyNow()] };
  await client.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
}

function readyNow(): Condition & { lastHeartbeatTime: string } {
  const now = rfc3339(systemClock.now());
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' } as const;
  return { ...ready, lastHeartbeatTime: now, lastTransitionTime: now };
}

/** The API server of a control-plane host answers for as long as its manifest is in place. */
async function passThrough(
  host: StandInHost,
  address: string,
  port: number,
  upstream: URL,
): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((incoming) => {
    if (!existsSync(join(host.root, 'etc/kubernetes/manifests/kube-apiserver.yaml')))
      return incoming.destroy();
    const outgoing = connect(Number(upstream.port), upstream.hostname);
    for (const [from, to] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(from);
      from.on('error', () => to.destroy()).on('close', () => sockets.delete(from));
      from.pipe(to);
    }
    return undefined;
  });
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(port, address, resolve),
  );
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** As kubelets do; a beat that fails is simply missed. */
function keepReady(client: KubeClient, hosts: readonly StandInHost[]): Disposable {
  const beat = (): void => {
    for (const { name } of hosts) void reportReady(client, name).catch(() => undefined);
  };
  const timer = setInterval(beat, HEARTBEAT_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function gone(deletion: Promise<void>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

function series(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);
}
