/** Reads Kured's lock, which Kured holds while it drains and reboots a node. Its value is an annotation of Kured's DaemonSet. */
import { daemonSets } from '../kube/resources.ts';
import { ifFound } from '../kube/status-error.ts';
import { rfc3339 } from '../util/clock.ts';
import { ifPossible } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import { printable } from '../util/printable.ts';
import type { LockKind, OtherLock } from './tool.ts';

/** Where Kured keeps its lock, unless it runs with --ds-namespace, --ds-name or --lock-annotation. */
const KURED = { namespace: 'kube-system', name: 'kured' };
const LOCK = 'weave.works/kured-node-lock';
const COMMAND = `kubectl -n ${KURED.namespace} annotate daemonset ${KURED.name} ${LOCK}-`;

const NANOSECONDS = 1_000_000;

export const kuredLock: LockKind = {
  tool: 'Kured',
  title: 'the lock of Kured',
  place: `the DaemonSet ${KURED.namespace}/${KURED.name}`,
  async look(client, { now, abort }) {
    const { name, namespace } = KURED;
    const kured = await ifFound(client.get(daemonSets, name, { namespace, abort }));
    return { others: kuredLocks(kured?.metadata.annotations, now) };
  },
};

/**
 * Returns the locks that have not expired at `now`, in milliseconds. The value is one lock, or a list of them if Kured runs with
 * `--concurrency`. A value that nobody can read is held by an unknown node, because Kured does not reboot then either.
 */
export function kuredLocks(
  annotations: Readonly<Record<string, string>> = {},
  now: number,
): OtherLock[] {
  const text = annotations[LOCK];
  if (text === undefined) return [];
  const value = ifPossible((): unknown => JSON.parse(text));
  if (!isRecord(value)) return [held('an unknown node')];
  const all = 'maxOwners' in value ? value['locks'] : [value];
  // Go writes an empty list as null.
  return (Array.isArray(all) ? (all as unknown[]) : []).flatMap((each) => lockIn(each, now));
}

function lockIn(value: unknown, now: number): OtherLock[] {
  const { nodeID, created, TTL } = isRecord(value) ? value : {};
  const node = typeof nodeID === 'string' ? printable(nodeID) : 'an unknown node';
  // Without a TTL, a lock never expires.
  const lasts = typeof TTL === 'number' && TTL > 0 ? TTL / NANOSECONDS : Infinity;
  const until = Date.parse(String(created)) + lasts;
  if (!Number.isFinite(until)) return [held(node)];
  return until <= now ? [] : [{ ...held(node), until: rfc3339(until) }];
}

function held(node: string): OtherLock {
  return {
    tool: 'Kured',
    message: `Kured holds its lock for ${node}`,
    ends: `Kured has rebooted ${node} and releases the lock, or, if Kured is gone, somebody runs ${COMMAND}`,
  };
}
