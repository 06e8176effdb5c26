/** The session of `refit kubeadm`: the manifest, a connection to the API, and shells on the hosts. */
import { hostname, userInfo } from 'node:os';
import { loadManifest, type Manifest } from '../../dialects/kubeadm/manifest.ts';
import { openShells, type Shells } from '../../dialects/kubeadm/ssh.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ClusterConfig } from '../../kube/config/cluster-config.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { leaderIdentity } from '../../kube/election/identity.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/log.ts';
import type { ConnectionFlags } from '../options.ts';
import type { Output } from '../output.ts';

export interface KubeadmFlags extends ConnectionFlags {
  readonly manifest: string;
}

export interface KubeadmApplyFlags extends KubeadmFlags {
  readonly yes?: boolean;
  /** Milliseconds. */
  readonly leaseDuration: number;
}

export interface KubeadmParts {
  readonly clock: Clock;
  readonly output: Output;
  readonly log: Logger;
  readonly abort: AbortSignal;
  /** What the user typed; undefined without a terminal. */
  readonly ask: (question: string) => Promise<string | undefined>;
  /** New for each run. */
  readonly random: string;
  /** From 0 to below 1. */
  readonly jitter: () => number;
}

export interface KubeadmSession extends KubeadmParts {
  readonly manifest: Manifest;
  readonly config: ClusterConfig;
  readonly client: KubeClient;
  readonly shells: Shells;
  /** Shown to others who wait for the lock. */
  readonly identity: string;
}

export async function inSession(
  flags: KubeadmFlags,
  parts: KubeadmParts,
  work: (session: KubeadmSession) => Promise<number>,
): Promise<number> {
  const manifest = await loadManifest(flags.manifest);
  const config = await loadClusterConfig({ path: flags.kubeconfig ?? manifest.kubeconfig, context: flags.context });
  const shells = await openShells(manifest.ssh);
  const client = createClient(config, { userAgent: 'refit-kubeadm' });
  const identity = leaderIdentity(hostname(), userInfo().username.slice(0, 16), String(process.pid), parts.random);
  try {
    return await work({ ...parts, manifest, config, client, shells, identity });
  } finally {
    client.close();
    await shells.close();
  }
}
