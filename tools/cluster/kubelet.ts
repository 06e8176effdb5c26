/** Owns what a stand-in host's kubelet tells of its Node: that it is Ready, and which version runs, while the service answers. */
import type { Host } from '../../src/embedded/hosts/host.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { reportReady } from './objects.ts';

/** Well within the 50 s after which the controller manager calls a silent node NotReady. */
const HEARTBEAT_MS = 10_000;
/** A kubelet that was restarted with another version tells it at once; here it is asked. */
const LOOK_MS = 500;

interface Told {
  readonly version: string;
  readonly at: number;
}

/** The first report of all is awaited by nobody: a node is Ready when it says so. Stops when it is disposed of. */
export function keepReady(client: KubeClient, hosts: readonly Host[]): Disposable {
  const told = new Map<string, Told>();
  const look = (): void => {
    for (const host of hosts) void report(client, host, told);
  };
  look();
  const timer = setInterval(look, LOOK_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** A beat that fails is simply missed, as a kubelet's is. */
async function report(client: KubeClient, host: Host, told: Map<string, Told>): Promise<void> {
  try {
    const version = await host.version();
    const last = told.get(host.name);
    const at = systemClock.monotonic();
    if (last?.version === version && at - last.at < HEARTBEAT_MS) return;
    told.set(host.name, { version, at });
    await reportReady(client, host.name, version, rfc3339(systemClock.now()));
  } catch {
    told.delete(host.name);
  }
}
