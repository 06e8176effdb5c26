/** The one object that carries the agent's signals: watched by name, and written as a whole. */
import type { KubeClient } from '../../kube/client.ts';
import { compareResourceVersions, type KubeObject, type Resource } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import type { Tools } from '../../util/tools.ts';

export interface OwnObjectParts extends Tools {
  readonly client: KubeClient;
  readonly resource: Resource;
  readonly name: string;
}

/** Longer than a watch lags or an answer takes; limited, as a cluster restored from a backup has lower versions. */
const ECHO_MS = 60_000;

/** The last version from the watch, or from our own writes. */
interface Mark {
  readonly resourceVersion: string;
  readonly at: number;
}

const NEVER: Mark = { resourceVersion: '0', at: Number.NEGATIVE_INFINITY };

/** Field manager of the registration. Signals have another one, because the original's leader writes them too. */
const FIELD_MANAGER = 'refit-agent';

export type OwnObject = ReturnType<typeof ownObject>;

export function ownObject({ client, resource, name, clock, random, log }: OwnObjectParts) {
  const listeners = new Set<() => void>();
  let newest: KubeObject | undefined;
  let [isKnown, version] = [false, 0];
  let [written, watched] = [NEVER, NEVER];
  const markOf = ({ metadata }: KubeObject): Mark => ({
    resourceVersion: metadata.resourceVersion ?? '0',
    at: clock.monotonic(),
  });
  const isOutdated = ({ metadata }: KubeObject, { resourceVersion, at }: Mark): boolean => {
    const isFresh = clock.monotonic() - at < ECHO_MS;
    return (
      isFresh && compareResourceVersions(metadata.resourceVersion ?? '0', resourceVersion) <= 0
    );
  };
  const set = (object: KubeObject | undefined): void => {
    newest = object;
    isKnown = true;
    version++;
    for (const listener of listeners) listener();
  };
  /** The answer may be older than what the watch has shown since, and the watch shows nothing twice. */
  const wrote = (object: KubeObject): void => {
    written = markOf(object);
    if (!isOutdated(object, watched)) set(object);
  };
  /** A watch lags behind our own writes: older events are ignored. */
  const saw = (event: KubeObject, now: KubeObject | undefined): void => {
    watched = markOf(event);
    if (now === undefined || !isOutdated(event, written)) set(now);
  };
  return {
    get newest(): KubeObject | undefined {
      return newest;
    },
    get isKnown(): boolean {
      return isKnown;
    },
    get version(): number {
      return version;
    },
    /** Calls `listener` after each change of `newest`; the returned function unsubscribes. */
    onChange(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async follow(abort: AbortSignal): Promise<void> {
      const informer = createInformer(client, resource, {
        fieldSelector: `metadata.name=${name}`,
        clock,
        random,
        log,
      });
      const live = (object: KubeObject): void => saw(object, object);
      informer.addHandler({
        added: live,
        updated: live,
        deleted: (object) => saw(object, undefined),
      });
      const following = informer.run(abort);
      const synced = (): void => set(newest);
      await informer.whenSynced(abort).then(synced, () => undefined);
      await following;
    },
    /** PUT with the object's resourceVersion: rejects with a conflict when the object has changed. */
    write: async (object: KubeObject, deadlineMs?: number) =>
      wrote(await client.replace(resource, object, { deadlineMs })),
    writeStatus: async (object: KubeObject) =>
      wrote(await client.replace(resource, object, { subresource: 'status' })),
    /** Server-side apply with force: creates the object if needed; fields that were claimed before and are missing now go. */
    claim: async (fields: KubeObject) =>
      wrote(
        await client.patch(resource, name, fields, {
          type: 'apply',
          force: true,
          fieldManager: FIELD_MANAGER,
        }),
      ),
    async refresh(): Promise<void> {
      const object = await ifFound(client.get(resource, name));
      if (!object || !(isOutdated(object, written) || isOutdated(object, watched))) set(object);
    },
  };
}
