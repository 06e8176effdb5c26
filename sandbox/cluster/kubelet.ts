/** Stands in for a host's kubelet: reports its Node as Ready with the running version while the service answers. */

import type { KubeClient } from '../../src/kube/client.ts';
import { rfc3339, sleep, systemClock } from '../../src/util/clock.ts';
import { kubernetesPartOf } from '../../src/versions/release-parts.ts';
import type { Host } from '../hosts/host.ts';
import { reportReady } from './objects.ts';

/** Much less than the 50 s after which the controller manager marks a node without heartbeats as NotReady. */
const HEARTBEAT_MS = 10_000;
const LOOK_MS = 50;
/**
 * Milliseconds between two requests to a service that has just started. A kubelet reports right after its start, and
 * agents wait for that report.
 */
const ASK_MS = 10;

/** The last heartbeat, and the start of the service that sent it. */
interface Beat {
  readonly starts: number;
  readonly at: number;
}

export interface Kubelets {
  /**
   * The version with which the service starts, but its kubelet does not. If it is set, kubelets report only when they
   * start, so kwok must renew the leases.
   */
  readonly mute?: string | undefined;
  /** Returns the version that the kubelet of a service reports; by default that of a kubelet of k0s. */
  readonly reported?: (version: string) => string;
}

/**
 * Keeps the Nodes Ready until it is disposed. It does not wait for the first heartbeat, so a Node is Ready only after
 * its first report.
 */
export function keepReady(
  client: KubeClient,
  hosts: readonly Host[],
  kubelets: Kubelets = {},
): Disposable {
  const { mute } = kubelets;
  const beats = new Map<string, Beat>();
  const beating = new Set<string>();
  const end = new AbortController();
  const look = (): void => {
    for (const host of hosts) {
      const { name, starts } = host;
      const last = beats.get(name);
      const isTold =
        last?.starts === starts &&
        (mute !== undefined || systemClock.monotonic() - last.at < HEARTBEAT_MS);
      if (isTold || beating.has(name)) continue;
      beating.add(name);
      const at = systemClock.monotonic();
      void beat(client, host, kubelets, end.signal)
        // A heartbeat that fails is left out, as with a real kubelet. The next round sends the next heartbeat.
        .then((isHeard) => (isHeard ? beats.set(name, { starts, at }) : beats.delete(name)))
        .finally(() => beating.delete(name));
    }
  };
  look();
  const timer = setInterval(look, LOOK_MS);
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      end.abort();
    },
  };
}

/** Asks a service that has just started until it answers, then reports its Node as Ready. */
async function beat(
  client: KubeClient,
  host: Host,
  { mute, reported = kubernetesPartOf }: Kubelets,
  end: AbortSignal,
): Promise<boolean> {
  const { starts } = host;
  while (!end.aborted && host.starts === starts && host.pid !== undefined) {
    try {
      const version = await host.version();
      if (version !== mute)
        await reportReady(
          client,
          host.name,
          version,
          rfc3339(systemClock.now()),
          reported(version),
        );
      return true;
    } catch {
      await sleep(systemClock, ASK_MS, end).catch(() => undefined);
    }
  }
  return false;
}
