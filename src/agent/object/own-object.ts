/** The one object that carries the agent's signals: watched by name, and written as a whole. */
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import type { Tools } from '../../util/tools.ts';
import { newestVersion } from './newest-version.ts';

export interface OwnObjectParts extends Tools {
  readonly client: KubeClient;
  readonly resource: Resource;
  readonly name: string;
}

/** Field manager of the registration. Signals have another one, because the original's leader writes them too. */
const FIELD_MANAGER = 'refit-agent';

export type OwnObject = ReturnType<typeof ownObject>;

export function ownObject({ client, resource, name, clock, random, log }: OwnObjectParts) {
  const listeners = new Set<() => void>();
  let newest: KubeObject | undefined;
  let isKnown = false;
  let version = 0;
  const newestKnown = newestVersion(clock);
  const set = (object: KubeObject | undefined): void => {
    newest = object;
    isKnown = true;
    version++;
    for (const listener of listeners) listener();
  };
  /** The watch shows nothing twice: an answer that is older than its last event is ignored. */
  const wrote = (object: KubeObject): void => {
    if (newestKnown.answered(object)) set(object);
  };
  /** `now` is undefined if the event says that the object was deleted, which always counts. */
  const saw = (event: KubeObject, now: KubeObject | undefined): void => {
    const isNewer = newestKnown.watched(event);
    if (now === undefined || isNewer) set(now);
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
      if (!object || newestKnown.isNewest(object)) set(object);
    },
  };
}
