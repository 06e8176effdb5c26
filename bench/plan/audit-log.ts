/** Reading the API server's audit log: which calls changed something, by whom, on what. */

/** What the benchmark reads of one line; an audit event has much more. */
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
  /** With the subresource, `nodes/status`. */
  readonly resource: string;
  readonly calls: number;
  /** Of them, how many the server refused. */
  readonly refused: number;
}

type Side = 'controller' | 'agents on controllers' | 'agents on workers';

const MUTATING = ['create', 'update', 'patch', 'delete', 'deletecollection'];
const SIDES: readonly (readonly [RegExp, Side])[] = [
  [/^refit-controller$/, 'controller'],
  [/^refit:controlnode:/, 'agents on controllers'],
  [/^system:node:/, 'agents on workers'],
];

/** One event for each line; the last one may still be incomplete while the server writes. */
export function parseAuditLog(text: string): AuditEvent[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEvent);
}

/** What follows the creation of the plan of this name; nothing where it is not in the log. */
export function sinceCreation(events: readonly AuditEvent[], plan: string): AuditEvent[] {
  const creation = events.findIndex(
    ({ verb, objectRef }) =>
      verb === 'create' && objectRef?.resource === 'plans' && objectRef.name === plan,
  );
  return creation < 0 ? [] : events.slice(creation + 1);
}

const NOT_COUNTED = ['leases', 'events'];

/**
 * Mutating calls of Refit's processes, refused ones included, most first. Leases are left out: they are renewed by the
 * clock, whether a plan runs or not. So are Events: they are for people, limited in number, and dropped under pressure. Whoever else writes (the rig's kubelet and administrator) is none of Refit.
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
