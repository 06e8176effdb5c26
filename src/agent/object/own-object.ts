/**
 * Watches the one object that carries the agent's signals, and writes it. The watch selects the object by name, and
 * each write replaces the whole object.
 */
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import { createListeners } from '../../util/listeners.ts';
import type { Tools } from '../../util/tools.ts';
import { newestVersion } from './newest-version.ts';

export interface OwnObjectParts extends Tools {
  readonly client: KubeClient;
  readonly resource: Resource;
  readonly name: string;
}

/** The field manager of the registration. Signals have another field manager, because the original leader writes them, too. */
const FIELD_MANAGER = 'refit-agent';

/** The object that carries the agent's signals, as the agent knows it now. */
export interface OwnObject {
  /** The newest known version. It is undefined if the object does not exist, or while `isKnown` is false. */
  readonly newest: KubeObject | undefined;
  /** True once the API server has answered whether the object exists. */
  readonly isKnown: boolean;
  /** This number grows with each change of `newest`. It is not the resourceVersion. */
  readonly version: number;
  /** Calls the listener after each change of `newest`. The returned function unsubscribes. */
  readonly onChange: (listener: () => void) => () => void;
  /** Watches the object until `abort` aborts. */
  readonly follow: (abort: AbortSignal) => Promise<void>;
  /** Replaces the object. Rejects with a conflict if it has changed since the version that is written. */
  readonly write: (object: KubeObject, deadlineMs?: number) => Promise<void>;
  /** Replaces the status of the object, with the same check for a conflict as `write`. */
  readonly writeStatus: (object: KubeObject) => Promise<void>;
  /**
   * Applies the fields with server-side apply and force. It creates the object if it does not exist. It removes fields
   * that an earlier call applied if this call does not contain them.
   */
  readonly claim: (fields: KubeObject) => Promise<void>;
  /** Reads the object from the API server, without waiting for the watch. */
  readonly refresh: () => Promise<void>;
}

/** Returns the object, which is not known before the first answer to `follow` or `refresh`. */
export function ownObject(parts: OwnObjectParts): OwnObject {
  const { client, resource, name, clock } = parts;
  const listeners = createListeners();
  let newest: KubeObject | undefined;
  let isKnown = false;
  let version = 0;
  const newestKnown = newestVersion(clock);
  const set = (object: KubeObject | undefined): void => {
    newest = object;
    isKnown = true;
    version++;
    listeners.call();
  };
  /**
   * Stores the answer to a write as the newest object, unless the watch has already reported this version or a newer
   * version. When the watch later reports the same version, that event is ignored.
   */
  const wrote = (object: KubeObject): void => {
    if (newestKnown.answered(object)) set(object);
  };
  /**
   * Stores the object from an event of the watch. `now` is undefined if the object was deleted. A deletion is always
   * stored, even if the event is old.
   */
  const saw = (event: KubeObject, now: KubeObject | undefined): void => {
    const isNewer = newestKnown.watched(event);
    if (now === undefined || isNewer) set(now);
  };
  return {
    get newest() {
      return newest;
    },
    get isKnown() {
      return isKnown;
    },
    get version() {
      return version;
    },
    onChange: (listener) => listeners.add(listener),
    async follow(abort) {
      const synced = (): void => set(newest);
      await watchByName(parts, { saw, synced }, abort);
    },
    write: async (object, deadlineMs) =>
      wrote(await client.replace(resource, object, { deadlineMs })),
    writeStatus: async (object) =>
      wrote(await client.replace(resource, object, { subresource: 'status' })),
    claim: async (fields) =>
      wrote(
        await client.patch(resource, name, fields, {
          type: 'apply',
          force: true,
          fieldManager: FIELD_MANAGER,
        }),
      ),
    async refresh() {
      const object = await ifFound(client.get(resource, name));
      if (!object || newestKnown.isNewest(object)) set(object);
    },
  };
}

interface WatchHandlers {
  /** This function is called for each event. `now` is undefined if the object was deleted. */
  readonly saw: (event: KubeObject, now: KubeObject | undefined) => void;
  /** This function is called once the API server has answered whether the object exists. */
  readonly synced: () => void;
}

/** Watches one object until `abort` aborts. */
async function watchByName(
  { client, resource, name, clock, random, log }: OwnObjectParts,
  { saw, synced }: WatchHandlers,
  abort: AbortSignal,
): Promise<void> {
  const fieldSelector = `metadata.name=${name}`;
  const informer = createInformer(client, resource, { fieldSelector, clock, random, log });
  const live = (object: KubeObject): void => saw(object, object);
  informer.addHandler({
    added: live,
    updated: live,
    deleted: (object) => saw(object, undefined),
  });
  const following = informer.run(abort);
  await informer.whenSynced(abort).then(synced, () => undefined);
  await following;
}
