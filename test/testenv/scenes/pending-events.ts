/** Knows which changes the watches of a scene have not delivered yet. */
import { performance } from 'node:perf_hooks';
import type { Answer } from './virtual-times.ts';

/** The most milliseconds that a watch may take for a change. A watch that has not delivered it until then never does. */
const MOST_DELAY_MS = 1_000;
/** The annotation of the bookmark that ends a streamed list. */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** The objects that a request is about. */
interface Place {
  /** The group, the version and the plural of the kind. */
  readonly kind: string;
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
}

/** One watch that is open. */
export class OpenWatch {
  readonly place: Place;
  /** True if the watch delivers the changes of some of the objects alone. */
  readonly isFiltered: boolean;
  /** The highest resourceVersion that the watch has delivered. */
  seen: bigint;
  /** True while the watch delivers the objects that exist already. */
  isListing: boolean;
  /** The uids of the objects that are gone. */
  readonly gone = new Set<string>();

  constructor(url: URL) {
    const { searchParams } = url;
    this.place = placeOf(url.pathname);
    this.isFiltered = searchParams.has('fieldSelector') || searchParams.has('labelSelector');
    this.isListing = searchParams.get('sendInitialEvents') === 'true';
    this.seen = BigInt(searchParams.get('resourceVersion') || '0');
  }

  note({ type, object }: Answer): void {
    const { resourceVersion = '0', uid = '', annotations = {} } = object?.metadata ?? {};
    const version = BigInt(resourceVersion);
    if (version > this.seen) this.seen = version;
    if (type === 'DELETED') this.gone.add(uid);
    if (INITIAL_EVENTS_END in annotations) this.isListing = false;
  }
}

interface Expected {
  readonly place: Place;
  readonly isDelivered: (watch: OpenWatch) => boolean;
  readonly since: number;
}

export class PendingEvents {
  readonly watches = new Set<OpenWatch>();
  #expected: Expected[] = [];

  /** Records that the API server has answered a write to this path. */
  expect(path: string, method: string, { metadata, details }: Answer): void {
    const place = placeOf(path);
    const since = performance.now();
    const uid = details?.uid;
    if (method === 'DELETE' && uid !== undefined)
      this.#expected.push({ place, since, isDelivered: ({ gone }) => gone.has(uid) });
    if (metadata?.resourceVersion === undefined || metadata.uid === undefined) return;
    const version = BigInt(metadata.resourceVersion);
    this.#expected.push({ place, since, isDelivered: ({ seen }) => seen >= version });
  }

  /** Reports whether every watch has delivered what was written. */
  get isEmpty(): boolean {
    const now = performance.now();
    this.#expected = this.#expected.filter(
      (each) => now - each.since < MOST_DELAY_MS && !this.#isDelivered(each),
    );
    return this.#expected.length === 0 && [...this.watches].every(({ isListing }) => !isListing);
  }

  #isDelivered({ place, isDelivered }: Expected): boolean {
    return [...this.watches].every(
      (watch) => watch.isFiltered || !isIn(place, watch.place) || isDelivered(watch),
    );
  }
}

function isIn({ kind, namespace }: Place, watched: Place): boolean {
  return (
    kind === watched.kind && (watched.namespace === undefined || watched.namespace === namespace)
  );
}

function placeOf(path: string): Place {
  const [root = '', ...rest] = path.split('/').filter(Boolean);
  const api = [root, ...rest.splice(0, root === 'api' ? 1 : 2)];
  // A path that ends with the name of a namespace is about the Namespace itself.
  const isInNamespace = rest[0] === 'namespaces' && rest.length > 2 && !isPartOfNamespace(rest[2]);
  const [plural = ''] = isInNamespace ? rest.slice(2) : rest;
  return { kind: [...api, plural].join('/'), namespace: isInNamespace ? rest[1] : undefined };
}

function isPartOfNamespace(text: string | undefined): boolean {
  return text === 'status' || text === 'finalize';
}
