/** Watches the one object that carries the agent's signals by its name, and writes it as a whole. */
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

/** The field manager of the registration. Signals have another one, because the original leader writes them, too. */
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
  /**
   * Takes over the answer to a write, unless the watch has already shown that version or a newer one. The watch does
   * not show a version twice.
   */
  const wrote = (object: KubeObject): void => {
    if (newestKnown.answered(object)) set(object);
  };
  /** Takes over an event of the watch. `now` is undefined if the object was deleted, which always counts. */
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
    write: async (object: KubeObject, deadlineMs?: number) =>
      wrote(await client.replace(resource, object, { deadlineMs })),
    writeStatus: async (object: KubeObject) =>
      wrote(await client.replace(resource, object, { subresource: 'status' })),
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
