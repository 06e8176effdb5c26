/** Owns what a stand-in host's kubelet tells of its Node: that it is Ready, and which version runs, while the service answers. */

import type { KubeClient } from '../../src/kube/client.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import type { Host } from '../hosts/host.ts';
import { reportReady } from './objects.ts';

/** Well within the 50 s after which the controller manager calls a silent node NotReady. */
const HEARTBEAT_MS = 10_000;
/** A kubelet that was started tells of itself at once: agents wait for that. */
const LOOK_MS = 50;

/** The last beat, and the start of the service that it was of. */
interface Beat {
  readonly starts: number;
  readonly at: number;
}

/**
 * The first beat of all is awaited by nobody: a node is Ready when it says so. Of the version that is `mute` no kubelet
 * comes up, though the service does; beside it kubelets tell of themselves when they start and no more, and kwok must
 * renew the leases. Stops when it is disposed of.
 */
export function keepReady(client: KubeClient, hosts: readonly Host[], mute?: string): Disposable {
  const beats = new Map<string, Beat>();
  const beating = new Set<string>();
  const look = (): void => {
    for (const host of hosts) {
      const { name, starts } = host;
      const last = beats.get(name);
      const isTold =
        last?.starts === starts && (mute !== undefined || systemClock.monotonic() - last.at < HEARTBEAT_MS);
      if (isTold || beating.has(name)) continue;
      beating.add(name);
      const at = systemClock.monotonic();
      void beat(client, host, mute)
        // One that fails is simply missed, as a kubelet's is.
        .then((isHeard) => (isHeard ? beats.set(name, { starts, at }) : beats.delete(name)))
        .finally(() => beating.delete(name));
    }
  };
  look();
  const timer = setInterval(look, LOOK_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function beat(client: KubeClient, host: Host, mute: string | undefined): Promise<boolean> {
  try {
    const version = await host.version();
    if (version !== mute) await reportReady(client, host.name, version, rfc3339(systemClock.now()));
    return true;
  } catch {
    return false;
  }
}
