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

export class OwnObject {
  readonly #parts: OwnObjectParts;
  readonly #listeners = new Set<() => void>();
  #newest: KubeObject | undefined;
  #version = 0;
  #isKnown = false;
  #written = NEVER;
  #watched = NEVER;

  constructor(parts: OwnObjectParts) {
    this.#parts = parts;
  }

  get newest(): KubeObject | undefined {
    return this.#newest;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  get version(): number {
    return this.#version;
  }

  /** Calls `listener` after each change of `newest`; the returned function unsubscribes. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async follow(abort: AbortSignal): Promise<void> {
    const { client, resource, name, clock, random, log } = this.#parts;
    const fieldSelector = `metadata.name=${name}`;
    const informer = createInformer(client, resource, { fieldSelector, clock, random, log });
    informer.addHandler({
      added: (object) => this.#saw(object, object),
      updated: (object) => this.#saw(object, object),
      deleted: (object) => this.#saw(object, undefined),
    });
    const following = informer.run(abort);
    await informer.whenSynced(abort).then(
      () => this.#set(this.#newest),
      () => undefined,
    );
    await following;
  }

  /** PUT with the object's resourceVersion: rejects with a conflict when the object has changed. */
  async write(object: KubeObject, deadlineMs?: number): Promise<void> {
    this.#wrote(await this.#parts.client.replace(this.#parts.resource, object, { deadlineMs }));
  }

  async writeStatus(object: KubeObject): Promise<void> {
    this.#wrote(await this.#parts.client.replace(this.#parts.resource, object, { subresource: 'status' }));
  }

  /** Server-side apply with force: creates the object if needed; fields that were claimed before and are missing now go. */
  async claim(fields: KubeObject): Promise<void> {
    const { client, resource, name } = this.#parts;
    this.#wrote(
      await client.patch(resource, name, fields, { type: 'apply', force: true, fieldManager: FIELD_MANAGER }),
    );
  }

  async refresh(): Promise<void> {
    const object = await ifFound(this.#parts.client.get(this.#parts.resource, this.#parts.name));
    if (!object || !(this.#isOutdated(object, this.#written) || this.#isOutdated(object, this.#watched)))
      this.#set(object);
  }

  /** The answer may be older than what the watch has shown since, and the watch shows nothing twice. */
  #wrote(object: KubeObject): void {
    this.#written = this.#mark(object);
    if (!this.#isOutdated(object, this.#watched)) this.#set(object);
  }

  /** A watch lags behind our own writes: older events are ignored. */
  #saw(event: KubeObject, now: KubeObject | undefined): void {
    this.#watched = this.#mark(event);
    if (now === undefined || !this.#isOutdated(event, this.#written)) this.#set(now);
  }

  #mark({ metadata: { resourceVersion = '0' } }: KubeObject): Mark {
    return { resourceVersion, at: this.#parts.clock.monotonic() };
  }

  #isOutdated({ metadata }: KubeObject, { resourceVersion, at }: Mark): boolean {
    const isFresh = this.#parts.clock.monotonic() - at < ECHO_MS;
    return isFresh && compareResourceVersions(metadata.resourceVersion ?? '0', resourceVersion) <= 0;
  }

  #set(object: KubeObject | undefined): void {
    this.#newest = object;
    this.#isKnown = true;
    this.#version++;
    for (const listener of this.#listeners) listener();
  }
}
