/** Judges the events of an informer: which sequences of events are possible, and which are not. */

import { compareResourceVersions, type KubeObject, keyOf } from '../../src/kube/resources.ts';
import type { Handler } from '../../src/kube/watch/store.ts';

export interface OrderJudge {
  readonly handler: Handler<KubeObject>;
  /** Empty if every event was possible after the earlier events. */
  readonly violations: readonly string[];
  /** Events seen so far. */
  readonly events: number;
  /** uids that were added and not deleted. */
  readonly living: ReadonlySet<string>;
}

/**
 * `final`: a deleted object never returns. `passing`: a deleted object may return under the same uid, because a
 * selector can exclude an object and include it again.
 */
export function judgeOrder(name: string, deletion: 'final' | 'passing'): OrderJudge {
  return new Judge(name, deletion === 'final');
}

class Judge implements OrderJudge {
  readonly #name: string;
  readonly #final: boolean;
  readonly #uids = new Map<string, string>();
  readonly #versions = new Map<string, string>();
  readonly #dead = new Set<string>();
  readonly living = new Set<string>();
  readonly violations: string[] = [];
  events = 0;

  constructor(name: string, final: boolean) {
    this.#name = name;
    this.#final = final;
  }

  readonly handler: Handler<KubeObject> = {
    added: (object) => this.#added(object),
    updated: (object, previous) => this.#updated(object, previous),
    deleted: (object) => this.#deleted(object),
  };

  #added(object: KubeObject): void {
    const [key, uid] = this.#see(object);
    if (this.#uids.has(key)) this.#complain(`${key}: added while ${this.#uids.get(key)} lives`);
    if (this.#final && this.#dead.has(uid)) this.#complain(`${key}: ${uid} returned from the dead`);
    this.#uids.set(key, uid);
    this.living.add(uid);
  }

  #updated(object: KubeObject, previous: KubeObject): void {
    const [key, uid] = this.#see(object);
    if (previous.metadata.uid !== uid)
      this.#complain(`${key}: update from ${previous.metadata.uid} to ${uid}`);
    if (this.#uids.get(key) !== uid)
      this.#complain(`${key}: ${uid} updated, but ${this.#uids.get(key)} lives there`);
    if (previous.metadata.resourceVersion === object.metadata.resourceVersion)
      this.#complain(`${key}: an empty update`);
  }

  #deleted(object: KubeObject): void {
    const [key, uid] = this.#see(object);
    if (this.#uids.get(key) !== uid)
      this.#complain(`${key}: ${uid} deleted, but ${this.#uids.get(key)} lives there`);
    this.#uids.delete(key);
    this.living.delete(uid);
    this.#dead.add(uid);
  }

  #see(object: KubeObject): [string, string] {
    this.events++;
    const { uid = '', resourceVersion = '' } = object.metadata;
    const known = this.#versions.get(uid) ?? resourceVersion;
    if (compareResourceVersions(resourceVersion, known) < 0) {
      this.#complain(`${keyOf(object)}: ${uid} went back from ${known} to ${resourceVersion}`);
    }
    this.#versions.set(uid, resourceVersion);
    return [keyOf(object), uid];
  }

  #complain(text: string): void {
    this.violations.push(`${this.#name}: ${text}`);
  }
}
