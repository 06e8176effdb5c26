/** A stand-in kubeadm cluster: hosts behind SSH servers, their Nodes, and a manifest that names them all. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import type { Validity } from '../../tools/controlplane/certs.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { passThrough } from './api-server-pass.ts';
import {
  furnish,
  keepReady,
  registerNode,
  registerStaticPods,
  removeObjects,
} from './kubeadm-objects.ts';
import { ADDRESS, makeKey, type SshServer, type StartServer } from './server.ts';
import { answerHosts } from './stand-in.ts';
import { createStandInHost, type StandInHost } from './stand-in-host.ts';

export interface SshClusterOptions {
  /** The directory of all files of the hosts; the caller removes it. */
  readonly directory: string;
  readonly controlPlane: number;
  readonly workers: number;
  readonly version: string;
  readonly offers: readonly string[];
  /** The URL of the API server to which every control-plane host forwards. */
  readonly url: string;
  readonly adminKubeconfig: string;
  /** The kubeconfig that Refit uses. */
  readonly kubeconfig: string;
  readonly startServer: StartServer;
  /** Fields of the KubeletConfiguration in the ConfigMap kubelet-config. */
  readonly kubeletConfiguration?: object;
  /** True if kwok simulates pods on the Nodes. */
  readonly played?: boolean;
  readonly certificates?: Validity | undefined;
}

export interface SshCluster {
  readonly hosts: readonly StandInHost[];
  readonly client: KubeClient;
  /** The port of the API servers at the addresses of the control-plane hosts. */
  readonly apiPort: number;
  readonly servers: ReadonlyMap<string, SshServer>;
  host(name: string): StandInHost;
  /**
   * The URL of the API server of the first control-plane host. The API server refuses connections while its manifest is
   * missing.
   */
  readonly firstServer: string;
  /** Writes a manifest and returns its path. `change` can make the manifest invalid. */
  manifest(version: string, change?: (manifest: Record<string, unknown>) => void): Promise<string>;
  stop(): Promise<void>;
}

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
      const manifest = manifestOf(target, options.kubeconfig, hosts, servers);
      change(manifest);
      await writeFile(path, stringify(manifest));
      return path;
    },
    async stop() {
      await removeObjects(client, hosts);
      await everything.disposeAsync();
    },
  };
}

/** Returns a manifest of `refit kubeadm` for all hosts. */
function manifestOf(
  target: string,
  kubeconfig: string,
  hosts: readonly StandInHost[],
  servers: ReadonlyMap<string, SshServer>,
): Record<string, unknown> {
  return {
    version: target,
    kubeconfig,
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
}

function series(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);
}
