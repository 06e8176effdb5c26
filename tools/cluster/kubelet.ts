/** Owns the one thing a stand-in host's kubelet does: saying that its Node is Ready, for as long as the service answers. */
import type { Host } from '../../src/embedded/hosts/host.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { reportReady } from './objects.ts';

/** Well within the 50 s after which the controller manager calls a silent node NotReady. */
const HEARTBEAT_MS = 10_000;

/** The first report of all is awaited by nobody: a node is Ready when it says so. Stops when it is disposed of. */
export function keepReady(client: KubeClient, hosts: readonly Host[]): Disposable {
  const beat = (): void => {
    for (const host of hosts) void report(client, host);
  };
  beat();
  const timer = setInterval(beat, HEARTBEAT_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** A beat that fails is simply missed, as a kubelet's is. */
async function report(client: KubeClient, host: Host): Promise<void> {
  try {
    await host.version();
    await reportReady(client, host.name, rfc3339(systemClock.now()));
  } catch {
    return;
  }
}
