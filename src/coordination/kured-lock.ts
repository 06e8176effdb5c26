/**
 * Reads and writes the lock of Kured. Kured holds it while it drains and reboots a node, and Refit holds it while nodes are in
 * progress. It is an annotation of Kured's DaemonSet: one lock, or a list of locks if Kured runs with `--concurrency`.
 */
import { daemonSets, type KubeObject } from '../kube/resources.ts';
import { ifFound } from '../kube/status-error.ts';
import { rfc3339 } from '../util/clock.ts';
import { ifPossible } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import { ownMember } from '../util/own-member.ts';
import { printable } from '../util/printable.ts';
import { scalarText } from '../util/scalar-text.ts';
import { concurrencyOf, MOST_AT_ONCE } from './kured-concurrency.ts';
import type { LockClient, LockKind, LockView, Look, OtherLock } from './tool.ts';

/**
 * The DaemonSet and the annotation in which Kured keeps its lock, unless Kured runs with --ds-namespace, --ds-name or
 * --lock-annotation.
 */
const KURED = { namespace: 'kube-system', name: 'kured' };
const PLACE = `the DaemonSet ${KURED.namespace}/${KURED.name}`;
const LOCK = 'weave.works/kured-node-lock';
const COMMAND = `kubectl -n ${KURED.namespace} annotate daemonset ${KURED.name} ${LOCK}-`;

const NANOSECONDS = 1_000_000;

/**
 * Milliseconds after which Kured takes the lock if no process of Refit renews it. A change of the leader of Refit takes
 * less time.
 */
const LASTS_MS = 300_000;
const RENEW_MS = 60_000;

export const kuredLock: LockKind = {
  tool: 'Kured',
  title: 'the lock of Kured',
  place: PLACE,
  taking: {
    rights: '`refit install rights coordinate-kured`',
    renewMs: RENEW_MS,
    lastsMs: LASTS_MS,
  },
  async look(client, look) {
    const { name, namespace } = KURED;
    const kured = await ifFound(client.get(daemonSets, name, { namespace, abort: look.abort }));
    // Without Kured there is no lock, so Refit need not take it, and nobody else can hold it.
    return kured ? viewOf(client, kured, look) : { others: [], renewedAt: look.now };
  },
};

/** One lock in the format of Kured. Refit keeps fields that it does not know. */
type Entry = Readonly<Record<string, unknown>>;

interface Value {
  /** True if the value is a list. With `--concurrency`, Kured ignores a single lock, and overwrites it. */
  readonly isList: boolean;
  readonly entries: readonly Entry[];
}

/**
 * The entries of a value that are still valid: all entries of Refit, even expired ones, and the entries of others that
 * have not expired.
 */
interface Entries extends Value {
  readonly own: readonly Entry[];
  readonly foreign: readonly Entry[];
  /** The number of nodes that Kured reboots at once, each with a lock of its own. Refit needs all these locks. */
  readonly places: number;
}

function viewOf(client: LockClient, kured: KubeObject, look: Look): LockView {
  const text = ownMember(kured.metadata.annotations, LOCK);
  const value = text === undefined ? { isList: false, entries: [] } : valueIn(text);
  // A value that cannot be read counts as a lock of somebody else. Kured does not reboot a node either while it cannot
  // read the value.
  if (!value) return { others: [heldFor('an unknown node')] };
  const concurrency = concurrencyOf(kured);
  const isOwn = ({ nodeID }: Entry): boolean => typeof nodeID === 'string' && look.isOwn(nodeID);
  const entries: Entries = {
    ...value,
    own: value.entries.filter(isOwn),
    foreign: value.entries.filter((entry) => !isOwn(entry) && expiryOf(entry) > look.now),
    places: concurrency ?? Math.max(1, value.entries.length),
  };
  const write = async (next: object | null): Promise<void> => {
    const { name, namespace } = KURED;
    const annotations = { [LOCK]: next && JSON.stringify(next) };
    const patch = { metadata: { resourceVersion: kured.metadata.resourceVersion, annotations } };
    await client.patch(daemonSets, name, patch, { namespace, type: 'merge' });
  };
  return {
    others: [
      ...entries.foreign.map(lockIn),
      ...(concurrency === undefined ? [UNKNOWN_CONCURRENCY] : []),
    ],
    renewedAt: renewalOf(entries),
    take: async () => await write(takenFrom(entries, look)),
    giveBack: async () => await write(withoutOwn(entries)),
  };
}

/** Returns the locks of an annotation; undefined if the annotation has no valid format. */
function valueIn(text: string): Value | undefined {
  const value = ifPossible((): unknown => JSON.parse(text));
  if (!isRecord(value)) return undefined;
  if (!('maxOwners' in value)) return { isList: false, entries: [value] };
  // Go writes an empty list as null.
  const locks: unknown[] = Array.isArray(value['locks']) ? value['locks'] : [];
  return { isList: true, entries: locks.map((each) => (isRecord(each) ? each : {})) };
}

/**
 * Returns the time at which Refit renewed its lock. Returns the Unix epoch if Refit holds a lock but Kured could still
 * take a lock, so that Refit writes its lock again at once.
 */
function renewalOf({ isList, entries, own, foreign, places }: Entries): number | undefined {
  if (own.length === 0) return undefined;
  const live = own.length + foreign.length;
  const isComplete = isList && live === entries.length && live >= places;
  const isWhole = places > 1 || foreign.length > 0 ? isComplete : !isList;
  const times = own.map(({ created }) => Date.parse(scalarText(created)) || 0);
  return isWhole ? Math.min(...times) : 0;
}

/** Returns the value in which Refit holds all locks that others do not hold. */
function takenFrom({ foreign, places }: Entries, { holder, now }: Look): object {
  const own = {
    nodeID: holder,
    metadata: { unschedulable: false },
    created: rfc3339(now),
    // Without a TTL, the lock would expire after `--lock-ttl` of Kured, or never.
    TTL: LASTS_MS * NANOSECONDS,
  };
  if (places === 1 && foreign.length === 0) return own;
  const free = Math.max(1, places - foreign.length);
  return { maxOwners: places, locks: [...foreign, ...Array.from({ length: free }, () => own)] };
}

function withoutOwn({ foreign, places }: Entries): object | null {
  return foreign.length === 0 ? null : { maxOwners: places, locks: foreign };
}

/** Returns when the lock expires, in milliseconds since the Unix epoch. The result is Infinity for a lock without a TTL. */
function expiryOf({ created, TTL }: Entry): number {
  const lasts = typeof TTL === 'number' && TTL > 0 ? TTL / NANOSECONDS : Infinity;
  const expiry = Date.parse(scalarText(created)) + lasts;
  return Number.isFinite(expiry) ? expiry : Infinity;
}

function lockIn(entry: Entry): OtherLock {
  const { nodeID } = entry;
  const holder = typeof nodeID === 'string' ? printable(nodeID) : 'an unknown node';
  const expiry = expiryOf(entry);
  const until = expiry === Infinity ? {} : { until: rfc3339(expiry) };
  // The name of a node has no slash, and the holder that Refit writes has one.
  return { ...(holder.includes('/') ? heldBy(holder) : heldFor(holder)), ...until };
}

function heldFor(node: string): OtherLock {
  return {
    tool: 'Kured',
    message: `Kured holds its lock for ${node}`,
    ends: `Kured has rebooted ${node} and releases the lock, or, if Kured is gone, somebody runs ${COMMAND}`,
  };
}

function heldBy(holder: string): OtherLock {
  return {
    tool: 'Kured',
    message: `the lock of Kured is held by ${holder}`,
    ends: `${holder} releases the lock`,
  };
}

const UNKNOWN_CONCURRENCY: OtherLock = {
  tool: 'Kured',
  message: `${PLACE} does not show how many nodes Kured reboots at once`,
  ends: `--concurrency in its args is a number of at most ${MOST_AT_ONCE}`,
};
