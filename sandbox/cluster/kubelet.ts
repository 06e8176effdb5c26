/** Stands in for a host's kubelet: reports its Node as Ready with the running version while the service answers. */

import type { KubeClient } from '../../src/kube/client.ts';
import { rfc3339, sleep, systemClock } from '../../src/util/clock.ts';
import type { Host } from '../hosts/host.ts';
import { reportReady } from './objects.ts';

/** Well within the 50 s after which the controller manager calls a silent node NotReady. */
const HEARTBEAT_MS = 10_000;
const LOOK_MS = 50;
/** A kubelet reports right after its start: agents wait for that. */
const ASK_MS = 10;

/** The last heartbeat, and the start of the service that sent it. */
interface Beat {
  readonly starts: number;
  readonly at: number;
}

/**
 * Nothing waits for the first heartbeat: a node is Ready when it reports so. With the version `mute` the service starts, but
 * no kubelet; then kubelets report only when they start, and kwok must renew the leases. Ends when it is disposed.
 */
export function keepReady(client: KubeClient, hosts: readonly Host[], mute?: string): Disposable {
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
      void beat(client, host, mute, end.signal)
        // One that fails is simply missed, as a kubelet's is.
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

/** Asks a service that has just started until it answers. */
async function beat(
  client: KubeClient,
  host: Host,
  mute: string | undefined,
  end: AbortSignal,
): Promise<boolean> {
  const { starts } = host;
  while (!end.aborted && host.starts === starts && host.pid !== undefined) {
    try {
      const version = await host.version();
      if (version !== mute)
        await reportReady(client, host.name, version, rfc3339(systemClock.now()));
      return true;
    } catch {
      await sleep(systemClock, ASK_MS, end).catch(() => undefined);
    }
  }
  return false;
}
