/** Owns the agent's view of the one object that carries its signals: watched by name, written whole. */
import type { KubeClient } from '../kube/client.ts';
import { createInformer } from '../kube/informer.ts';
import { compareResourceVersions } from '../kube/resource-version.ts';
import type { Resource } from '../kube/resources.ts';
import { isNotFound } from '../kube/status-error.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/log.ts';

export interface OwnObjectParts {
  readonly client: KubeClient;
  readonly resource: Resource;
  readonly name: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

export class OwnObject {
  readonly #parts: OwnObjectParts;
  readonly #listeners = new Set<() => void>();
  #newest: KubeObject | undefined;
  #version = 0;
  #isKnown = false;

  constructor(parts: OwnObjectParts) {
    this.#parts = parts;
  }

  /** The newest state that was seen, by whatever way; undefined where the object does not exist. */
  get newest(): KubeObject | undefined {
    return this.#newest;
  }

  /** False until the first state was read. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Grows with every change of `newest`. */
  get version(): number {
    return this.#version;
  }

  /** Called after each change of `newest`; the returned function ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Watches until `signal` aborts; never rejects. */
  async follow(signal: AbortSignal): Promise<void> {
    const { client, resource, name, clock, random, log } = this.#parts;
    const fieldSelector = `metadata.name=${name}`;
    const informer = createInformer(client, resource, { fieldSelector, clock, random, logger: log });
    informer.addHandler({
      added: (object) => this.#accept(object),
      updated: (object) => this.#accept(object),
      deleted: () => this.#set(undefined),
    });
    const following = informer.run(signal);
    await informer.whenSynced(signal).then(
      () => this.#set(this.#newest),
      () => undefined,
    );
    await following;
  }

  /** PUT under the object's resourceVersion: a conflict where anybody else wrote since. */
  async write(object: KubeObject): Promise<void> {
    this.#accept(await this.#parts.client.replace(this.#parts.resource, object));
  }

  /** Reads the object anew, past all caches. */
  async refresh(): Promise<void> {
    try {
      this.#accept(await this.#parts.client.get(this.#parts.resource, this.#parts.name));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#set(undefined);
    }
  }

  /** A watch lags behind our own writes, and a server's cache behind its peers: what is older than known is dropped. */
  #accept(object: KubeObject): void {
    const [known, given] = [this.#newest?.metadata.resourceVersion, object.metadata.resourceVersion];
    if (known !== undefined && given !== undefined && compareResourceVersions(given, known) <= 0) return;
    this.#set(object);
  }

  #set(object: KubeObject | undefined): void {
    this.#newest = object;
    this.#isKnown = true;
    this.#version++;
    for (const listener of this.#listeners) listener();
  }
}
