/**
 * The times that a real API server writes, as a scene sees them. The server has the clock of this machine, and a scene
 * has a clock that the scene moves. So the creation and the deletion of an object get the time of the scene.
 */
import { type Clock, rfc3339 } from '../../../src/util/clock.ts';

interface Metadata {
  readonly uid?: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
}

/** What an API server answers. */
export interface Answer {
  readonly metadata?: Metadata & {
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  /** The objects of a list. */
  readonly items?: readonly Answer[];
  /** The type of an event of a watch. */
  readonly type?: string;
  /** The object of an event of a watch. */
  readonly object?: Answer;
  /** What a Status says about the object that was deleted. */
  readonly details?: { readonly uid?: string };
}

export class VirtualTimes {
  readonly #clock: Clock;
  /** When each object was seen for the first time, by uid. */
  readonly #created = new Map<string, string>();
  /** When each object that is being deleted is gone at the latest, by uid. */
  readonly #deleted = new Map<string, string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Changes the times in an object, in a list, or in an event of a watch. */
  translate({ metadata, items = [], object }: Answer): void {
    if (metadata) this.#translate(metadata);
    else if (object) this.translate(object);
    for (const item of items) this.translate(item);
  }

  #translate(metadata: Metadata): void {
    const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
    if (uid === undefined) return;
    const now = this.#clock.now();
    if (creationTimestamp !== undefined)
      metadata.creationTimestamp = this.#created.getOrInsert(uid, rfc3339(now));
    if (deletionTimestamp === undefined) return;
    const end = rfc3339(now + deletionGracePeriodSeconds * 1000);
    metadata.deletionTimestamp = this.#deleted.getOrInsert(uid, end);
  }
}
