/**
 * Reads the audit log of the API server: which calls changed something, who made them, and which objects they changed.
 */

/** The fields of an audit event that the benchmark reads. An audit event has many more fields. */
export interface AuditEvent {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource: string;
    readonly subresource?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
}

export interface CallCount {
  readonly side: Side;
  readonly verb: string;
  /** The resource with the subresource, such as `nodes/status`. */
  readonly resource: string;
  readonly calls: number;
  /** The number of these calls that the server refused. */
  readonly refused: number;
}

type Side = 'controller' | 'agents on controllers' | 'agents on workers';

const MUTATING = ['create', 'update', 'patch', 'delete', 'deletecollection'];
const SIDES: readonly (readonly [RegExp, Side])[] = [
  [/^refit-controller$/, 'controller'],
  [/^refit:controlnode:/, 'agents on controllers'],
  [/^system:node:/, 'agents on workers'],
];

/**
 * Returns one event for each line. It ignores the text after the last line break, because the server may still be
 * writing that line.
 */
export function parseAuditLog(text: string): AuditEvent[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEvent);
}

/** Returns the events after the creation of the plan with this name; empty if the log does not contain the creation. */
export function sinceCreation(events: readonly AuditEvent[], plan: string): AuditEvent[] {
  const creation = events.findIndex(
    ({ verb, objectRef }) =>
      verb === 'create' && objectRef?.resource === 'plans' && objectRef.name === plan,
  );
  return creation < 0 ? [] : events.slice(creation + 1);
}

const NOT_COUNTED = ['leases', 'events'];

/**
 * Counts the calls of the processes of Refit that change something, and sorts them by number, the largest first.
 * Refused calls count, too. Leases do not count, because the processes renew them at regular times, with or without a
 * plan. Events do not count either, because they are for people, limited in number, and dropped under load. Calls of
 * other users, such as the kubelet and the administrator of the rig, are not calls of Refit.
 */
export function countMutatingCalls(events: readonly AuditEvent[]): CallCount[] {
  const counts = new Map<string, CallCount>();
  for (const { verb, user, objectRef, responseStatus } of events) {
    const side = SIDES.find(([pattern]) => pattern.test(user.username))?.[1];
    if (side === undefined || objectRef === undefined || NOT_COUNTED.includes(objectRef.resource))
      continue;
    if (!MUTATING.includes(verb)) continue;
    const resource = [objectRef.resource, objectRef.subresource].filter(Boolean).join('/');
    const key = `${side} ${verb} ${resource}`;
    const { calls, refused } = counts.get(key) ?? { calls: 0, refused: 0 };
    const isRefused = (responseStatus?.code ?? 0) >= 400;
    counts.set(key, {
      side,
      verb,
      resource,
      calls: calls + 1,
      refused: refused + (isRefused ? 1 : 0),
    });
  }
  return [...counts.values()].toSorted((a, b) => b.calls - a.calls);
}
