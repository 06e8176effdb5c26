/** Owns the yardstick for reactions: how long one write takes until a watch shows it. */
import type { KubeClient } from '../../src/kube/client.ts';
import { createInformer } from '../../src/kube/informer.ts';
import { namespaces } from '../../src/kube/resources.ts';
import type { Clock } from '../../src/util/clock.ts';

const NAMESPACE = 'default';
const ANNOTATION = 'upgrade.refit.dev/benchmark';

/** Milliseconds from each of `count` writes, one after the other, to the event that shows it. */
export async function measureEchoes(
  client: KubeClient,
  count: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<number[]> {
  const stop = new AbortController();
  const informer = createInformer(client, namespaces, { fieldSelector: `metadata.name=${NAMESPACE}`, clock });
  const following = informer.run(AbortSignal.any([signal, stop.signal]));
  const echoes: number[] = [];
  try {
    await informer.whenSynced(signal);
    for (let index = 0; index < count; index++) {
      const writtenAt = clock.monotonic();
      const patch = { metadata: { annotations: { [ANNOTATION]: String(index) } } };
      const seen = new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('interrupted')), { once: true });
        informer.addHandler({
          updated: ({ metadata }) => metadata.annotations?.[ANNOTATION] === String(index) && resolve(),
        });
      });
      await Promise.all([client.patch(namespaces, NAMESPACE, patch, { type: 'merge' }), seen]);
      echoes.push(clock.monotonic() - writtenAt);
    }
  } finally {
    stop.abort();
    await following;
  }
  return echoes;
}
