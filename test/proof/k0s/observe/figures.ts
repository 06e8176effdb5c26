/** What an upgrade cost, from the audit logs of all API servers. */
import { type AuditedWrite, statusIn } from './audit.ts';

export interface Figures {
  /** From the creation of the Plan until its state is Completed. */
  readonly seconds: number;
  /** Median seconds from `Completed` of a node to the signal of the next node of the same role. */
  readonly gap: number;
  /** Median seconds from `Restart` to `UnCordoning` of a controller. */
  readonly restart: number;
  /** Requests that change something, without Leases and Events, divided by the number of nodes. */
  readonly writesPerNode: number;
}

export function figuresOf(writes: readonly AuditedWrite[], names: readonly string[]): Figures {
  const created = writes.find(isCreation);
  const completed = writes.find(
    ({ resource, sent, code }) =>
      resource === 'plans/status' && code < 300 && /^Completed$/.test(stateIn(sent)),
  );
  if (created === undefined || completed === undefined)
    throw new Error('the audit logs have no Plan that was created and completed');
  const during = writes.filter(({ at }) => at >= created.at && at <= completed.at);
  const times = firstTimes(during, names);
  const order = [...times.keys()];
  const gaps = order.flatMap((name, index) => {
    const next = order[index + 1];
    const from = times.get(name)?.get('Completed');
    const to = next === undefined ? undefined : times.get(next)?.get('Signalled');
    return from === undefined || to === undefined || next?.[0] !== name[0]
      ? []
      : [(to - from) / 1000];
  });
  const restarts = [...times].flatMap(([name, own]) => {
    const from = own.get('Restart');
    const to = own.get('UnCordoning');
    return !name.startsWith('c') || from === undefined || to === undefined
      ? []
      : [(to - from) / 1000];
  });
  const counted = during.filter(isCounted);
  return {
    seconds: (completed.at - created.at) / 1000,
    gap: median(gaps),
    restart: median(restarts),
    writesPerNode: counted.length / names.length,
  };
}

/** Returns the names of nodes in the order in which they were signalled. */
export const signalOrder = (
  writes: readonly AuditedWrite[],
  names: readonly string[],
): readonly string[] => [...firstTimes(writes, names).keys()];

/** Returns one line for each node: the seconds since the creation of the Plan at which it had each status first. */
export function timelineOf(
  writes: readonly AuditedWrite[],
  names: readonly string[],
): readonly string[] {
  const begun = writes.find(isCreation)?.at ?? 0;
  return [...firstTimes(writes, names)].map(([name, own]) => {
    const steps = [...own].map(([status, at]) => `${status} ${((at - begun) / 1000).toFixed(1)}`);
    return `${name}: ${steps.join(', ')}`;
  });
}

const isCreation = ({ verb, resource, code }: AuditedWrite): boolean =>
  /create|patch/.test(verb) && resource === 'plans' && code < 300;

/** Returns when each node had each status first. */
function firstTimes(
  writes: readonly AuditedWrite[],
  names: readonly string[],
): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const times = new Map<string, Map<string, number>>();
  for (const write of writes) {
    const status = statusIn(write);
    if (status === undefined || !names.includes(write.name)) continue;
    const own = times.get(write.name) ?? new Map<string, number>();
    // Until its signal, a Node may still carry the signal of an earlier Plan, which each write of the Node repeats.
    if (own.size === 0 && status !== 'Signalled') continue;
    if (!own.has(status)) own.set(status, write.at);
    times.set(write.name, own);
  }
  return times;
}

/** Returns true for the requests of leaders and agents. The programs of Kubernetes itself write whoever upgrades a node. */
function isCounted({ agent, resource, by }: AuditedWrite): boolean {
  if (/^(?:leases|events)\b/.test(resource)) return false;
  if (/^(?:kube-|kubelet|kubectl)/.test(agent)) return false;
  return (
    AUTOPILOT.some((name) => resource === name || resource.startsWith(`${name}/`)) && by !== ''
  );
}

const AUTOPILOT = ['plans', 'controlnodes', 'nodes', 'pods', 'noderollouts'];

const stateIn = (sent: unknown): string =>
  (sent as { status?: { state?: string } } | undefined)?.status?.state ?? '';

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? Number.NaN)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}
