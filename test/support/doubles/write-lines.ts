/**
 * The format in which the writes of doubles are compared with those of real k0s: text lines without times and without
 * names of hosts.
 */
import type { Plan } from '../../../src/api/autopilot/plan.ts';
import { decodeSignal } from '../../../src/signal/annotations.ts';
import type { Write } from './runtime/recorder.ts';

type Line = readonly [object: string, text: string];

/**
 * Returns the writes to each object (`plan`, `c1`, `w1`) in order: the author, the verb, the answer, and the resulting
 * content. A run of equal conflicts counts as one write, because the number of conflicts is random. The result leaves
 * out what autopilot does not write: statuses of Nodes, evictions (they name no node), Leases of leaders, and the
 * writes of people.
 */
export function linesByObject(writes: readonly Write[]): Record<string, string[]> {
  const groups: Record<string, string[]> = {};
  for (const [object, text] of writes.flatMap(lineOf)) {
    const lines = groups[object] ?? [];
    groups[object] = lines;
    if (!(text.includes(' 409 ') && lines.at(-1) === text)) lines.push(text);
  }
  return groups;
}

/**
 * Returns how the leader cordoned and drained the Nodes, for all Nodes together and in the leader's order. A run of
 * equal lines counts as one line.
 */
export function cordonLines(writes: readonly Write[]): string[] {
  const lines = writes.flatMap((write) => {
    if (write.resource === 'pods/eviction') return `eviction ${write.code}`;
    const isCordon =
      write.verb === 'patch' && JSON.stringify(write.body) === '{"spec":{"unschedulable":true}}';
    const isEnd = statusOf(write.annotations ?? {}) === 'ApplyingUpdate';
    const isItsOwn = write.resource === 'nodes' && !write.by.startsWith('system:node:');
    return isItsOwn && (isCordon || isEnd) ? `${write.name} ${lineOf(write)[0]?.[1]}` : [];
  });
  return lines.filter((line, index) => line !== lines[index - 1]);
}

/** Returns the names of the signalled targets, in order. */
export function signalled(writes: readonly Write[]): string[] {
  return writes
    .filter(
      ({ verb, annotations }) =>
        verb === 'update' && annotations !== undefined && statusOf(annotations) === 'none',
    )
    .filter(({ resource, code }) => ['nodes', 'controlnodes'].includes(resource) && code === 200)
    .map(({ name }) => name);
}

function lineOf(write: Write): Line[] {
  const { verb, resource, name, code, annotations = {}, body } = write;
  const start = `${actorOf(write)} ${verb}`;
  if (resource === 'plans/status')
    return [['plan', `${start} ${code} ${planText(write.status as Plan['status'])}`]];
  if (resource === 'leases' && name !== 'k0s-autopilot-controller')
    return [[name, `${start} lease ${code}`]];
  if (resource === 'controlnodes/status') return [[name, `${start} status ${code}`]];
  if (resource !== 'nodes' && resource !== 'controlnodes') return [];
  if (verb === 'patch') return [[name, `${start} ${code} ${JSON.stringify(body)}`]];
  return [[name, `${start} ${code} ${statusOf(annotations)}`]];
}

/**
 * Every controller uses the administrator's credentials. A controller that writes to the object of another controller
 * does so as the leader.
 */
function actorOf({ by, via, resource, name }: Write): 'node' | 'self' | 'leader' {
  if (by.startsWith('system:node:')) return 'node';
  return resource.startsWith('controlnodes') && via === name ? 'self' : 'leader';
}

/**
 * Returns the status of the signal in the annotations: `none` if the signal has no status yet, `no signal` if there is
 * no signal.
 */
export function statusOf(annotations: Readonly<Record<string, string>>): string {
  const signal = decodeSignal(annotations);
  return signal === undefined ? 'no signal' : (signal.status?.status ?? 'none');
}

/**
 * Returns the text of a Plan's status. Targets are in alphabetical order, because a selector returns them in no fixed
 * order.
 */
function planText(status: Plan['status']): string {
  const commands = (status?.commands ?? []).map(
    ({ id, state, description, k0supdate, airgapupdate }) => {
      const targets = [
        ...(k0supdate?.controllers ?? []),
        ...(k0supdate?.workers ?? []),
        ...(airgapupdate?.workers ?? []),
      ];
      const entries = targets.map((target) => `${target.name}=${target.state}`).toSorted();
      return [`#${id}`, state, description, ...entries].filter(Boolean).join(' ');
    },
  );
  return [status?.state, ...commands].join(' ');
}
