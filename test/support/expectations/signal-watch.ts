/** Watches signals from outside: records every status that any node has shown, in the order of the API server. */
import type { KubeClient } from '../../../src/kube/client.ts';
import { type KubeObject, nodes, type Resource } from '../../../src/kube/resources.ts';
import { createInformer } from '../../../src/kube/watch/informer.ts';
import { decodeSignal } from '../../../src/signal/annotations.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { systemClock } from '../../../src/util/clock.ts';

export interface Sighting {
  readonly name: string;
  readonly planId: string;
  /** Empty if the signal has no status yet. */
  readonly status: string;
  readonly at: number;
}

/** Watches the signals until `signal` aborts. It also records the signals that the nodes carry at the beginning. */
export async function watchSignals(
  client: KubeClient,
  abort: AbortSignal,
): Promise<readonly Sighting[]> {
  const sightings: Sighting[] = [];
  const last = new Map<string, string>();
  const look = ({ metadata: { name, annotations } }: KubeObject): void => {
    const data = decodeSignal(annotations);
    if (!data) return;
    const { planId, created, status } = data;
    const key = `${planId} ${created} ${status?.status}`;
    if (last.get(name) === key) return;
    last.set(name, key);
    sightings.push({ name, planId, status: status?.status ?? '', at: systemClock.monotonic() });
  };
  const resources: readonly Resource[] = [controlNodes, nodes];
  await Promise.all(
    resources.map(async (resource) => {
      const informer = createInformer(client, resource);
      informer.addHandler({ added: look, updated: look });
      void informer.run(abort);
      await informer.whenSynced(abort);
    }),
  );
  return sightings;
}
