/** Measures the time from a write until a watch shows it. The reactions of Refit are compared with this time. */
import type { KubeClient } from '../../src/kube/client.ts';
import { namespaces } from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';

const NAMESPACE = 'default';
const ANNOTATION = 'upgrade.refit.dev/benchmark';
/** The milliseconds between two writes. They are frequent enough for a median, and rare enough to cause no load. */
const PERIOD_MS = 1_000;

/** Returns the milliseconds from each write to the event that shows it. It writes once a second until `abort` aborts. */
export async function measureEchoes(
  client: KubeClient,
  clock: Clock,
  abort: AbortSignal,
): Promise<number[]> {
  const echoes: number[] = [];
  const writtenAt = new Map<string, number>();
  const informer = createInformer(client, namespaces, {
    fieldSelector: `metadata.name=${NAMESPACE}`,
    clock,
  });
  informer.addHandler({
    updated({ metadata }) {
      const at = writtenAt.get(metadata.annotations?.[ANNOTATION] ?? '');
      if (at !== undefined) echoes.push(clock.monotonic() - at);
    },
  });
  const following = informer.run(abort);
  for (let count = 1; await isAcknowledged(clock, abort); count++) {
    const patch = { metadata: { annotations: { [ANNOTATION]: String(count) } } };
    writtenAt.set(String(count), clock.monotonic());
    await client.patch(namespaces, NAMESPACE, patch, { type: 'merge' });
  }
  await following;
  return echoes;
}

/** Resolves with true after the period, or with false when `abort` aborts. */
async function isAcknowledged(clock: Clock, abort: AbortSignal): Promise<boolean> {
  return await sleep(clock, PERIOD_MS, abort).then(
    () => true,
    () => false,
  );
}
