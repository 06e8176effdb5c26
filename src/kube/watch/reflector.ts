/** Follows one collection, as in client-go: first the complete list, then every change, with retries after failures. */
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import type { KubeClient, Selection } from '../client.ts';
import { type KubeObject, keyOf, type Resource } from '../resources.ts';
import * as status from '../status-error.ts';
import { retryPace } from './retry-pace.ts';
import type { Store } from './store.ts';

/** Annotation of the bookmark that ends a streamed list. */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';
/** Seconds after which the server ends a watch, so that load spreads over its replicas again. */
const WATCH_SECONDS = { least: 300, most: 600 };
/** Milliseconds: a watch that ends sooner without an event counts as failed, or a bad proxy would make us spin. */
const SHORTEST_WATCH_MS = 1_000;

export interface ReflectorOptions<T extends KubeObject> extends Selection, Tools {
  /** `streamed` is one request, from the server's cache; it is held back until the next mark of progress, up to 0.1 s. */
  readonly firstList: 'streamed' | 'paged';
  /** Makes objects smaller as they arrive: thousands of complete ones may not fit into memory. */
  readonly transform: (object: T) => T;
}

/** Follows until `abort`, and never rejects. `sink` gets what is found, in the server's order. */
export async function reflect<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  options: ReflectorOptions<T>,
  sink: Store<T>,
  abort: AbortSignal,
): Promise<void> {
  const { namespace, labelSelector, fieldSelector, firstList, transform } = options;
  const { clock, random, log } = options;
  const selection = { namespace, labelSelector, fieldSelector, abort };
  const pace = retryPace(clock, random);
  let isPaged = firstList === 'paged';
  /** Where the next watch starts; undefined when the whole list must be read. */
  let resourceVersion: string | undefined;
  const advance = ({ metadata }: { metadata: { resourceVersion?: string } }): string => {
    resourceVersion = metadata.resourceVersion ?? '';
    pace.succeeded();
    return resourceVersion;
  };
  const list = async (): Promise<void> => {
    const found = await client.listAll(resource, { ...selection, transform });
    sink.replace(found.items, advance(found));
  };
  /** Without a version also lists: the server sends the objects, a marked bookmark, and then the changes. */
  const watch = async (): Promise<void> => {
    let found = resourceVersion === undefined ? new Map<string, T>() : undefined;
    const query = {
      ...selection,
      resourceVersion,
      sendInitialEvents: found !== undefined,
      timeoutSeconds: watchSeconds(random),
    };
    for await (const event of client.watch(resource, query)) {
      // The server reports problems inside a stream as an event, above all an expired version.
      if (event.type === 'ERROR') throw new status.StatusError(event.object);
      const { type, object } = event;
      if (!found) {
        if (type !== 'BOOKMARK') sink.apply(type, transform(object));
        sink.advance(advance(object));
      } else if (type === 'DELETED') found.delete(keyOf(object));
      else if (type !== 'BOOKMARK') found.set(keyOf(object), transform(object));
      else if (isInitialEnd(object)) {
        sink.replace([...found.values()], advance(object));
        found = undefined;
      } else {
        // Only a server that does not know the parameter sends an ordinary bookmark first.
        isPaged = true;
        return;
      }
    }
  };
  const follow = async (): Promise<void> => {
    if (resourceVersion === undefined && isPaged) await list();
    const before = resourceVersion;
    const startedAt = clock.monotonic();
    await watch();
    const lasted = clock.monotonic() - startedAt;
    if (lasted < SHORTEST_WATCH_MS && before === resourceVersion)
      throw new Error(`the watch ended after ${lasted} ms`);
  };
  const recover = async (thrown: unknown): Promise<void> => {
    if (resourceVersion === undefined && mayLackStreaming(thrown)) isPaged = true;
    if (status.isGone(thrown) || pace.isSuspect(thrown)) resourceVersion = undefined;
    const { pauseMs, isRoutine } = pace.failed(thrown);
    const fields = { problem: messageOf(thrown), retryInMs: Math.round(pauseMs) };
    if (isRoutine) log.debug('watch interrupted', fields);
    else log.warn('watch failed', fields);
    await sleep(clock, pauseMs, abort).catch(() => undefined);
  };
  while (!abort.aborted)
    await follow().catch(async (error: unknown) =>
      abort.aborted ? undefined : await recover(error),
    );
}

function isInitialEnd({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  return metadata.annotations?.[INITIAL_EVENTS_END] === 'true';
}

/** Returns a number of seconds by chance, so that watches do not all end at once. */
function watchSeconds(random: () => number): number {
  const { least, most } = WATCH_SECONDS;
  return Math.round(least + random() * (most - least));
}

/** True for an answer of a server that may not know streamed lists: servers without the feature answer Invalid, older proxies and aggregated servers BadRequest. */
function mayLackStreaming(thrown: unknown): boolean {
  return status.isInvalid(thrown) || (thrown instanceof status.StatusError && thrown.code === 400);
}
