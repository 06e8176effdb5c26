/** The session of `refit kubeadm`: the manifest, a connection to the API, and shells on the hosts. */
import { randomBytes } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import { loadManifest, type Manifest } from '../../dialects/kubeadm/manifest.ts';
import { openShells, type Shells } from '../../dialects/kubeadm/ssh.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ClusterConfig } from '../../kube/config/cluster-config.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { leaderIdentity } from '../../kube/election/identity.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { type Clock, systemClock } from '../../util/clock.ts';
import { type Logger, stderrLogger } from '../../util/log.ts';
import type { ConnectionFlags } from '../options.ts';
import { type Output, plainOutput } from '../output.ts';

export interface KubeadmFlags extends ConnectionFlags {
  readonly manifest: string;
}

export interface KubeadmApplyFlags extends KubeadmFlags {
  readonly yes?: boolean;
  /** Milliseconds. */
  readonly leaseDuration: number;
}

export interface KubeadmSession {
  readonly clock: Clock;
  readonly output: Output;
  readonly log: Logger;
  readonly abort: AbortSignal;
  readonly manifest: Manifest;
  readonly config: ClusterConfig;
  readonly client: KubeClient;
  readonly shells: Shells;
  /** Shown to others who wait for the lock. */
  readonly identity: string;
}

export async function inSession(
  flags: KubeadmFlags,
  abort: AbortSignal,
  work: (session: KubeadmSession) => Promise<number>,
): Promise<number> {
  const manifest = await loadManifest(flags.manifest);
  const config = await loadClusterConfig({ path: flags.kubeconfig ?? manifest.kubeconfig, context: flags.context });
  const shells = await openShells(manifest.ssh);
  const client = createClient(config, { userAgent: 'refit-kubeadm' });
  const random = randomBytes(4).toString('hex');
  const identity = leaderIdentity(hostname(), userInfo().username.slice(0, 16), String(process.pid), random);
  try {
    // The status view shows progress, so only problems are logged.
    const here = { clock: systemClock, output: plainOutput, log: stderrLogger('warn'), abort };
    return await work({ ...here, manifest, config, client, shells, identity });
  } finally {
    client.close();
    await shells.close();
  }
}
