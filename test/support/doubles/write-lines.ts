/** The form in which what doubles wrote is compared with what real k0s wrote: lines without names of times and hosts. */
import type { Plan } from '../../../src/api/autopilot/plan.ts';
import { decodeSignal } from '../../../src/signal/annotations.ts';
import type { Write } from './runtime/recorder.ts';

type Line = readonly [object: string, text: string];

/**
 * By object (`plan`, `c1`, `w1`), what was written to it, in order: by whom, how, with which answer, and what it then said.
 * A run of equal conflicts counts as one: how often somebody else gets in between is chance. Left out is what isn't
 * autopilot's: statuses of Nodes, evictions (they name no node), leases of leaders, and what people did.
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

/** How the leader cordoned and drained Nodes, over all of them, in its own order; runs of equal lines as one. */
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

/** Who was signalled, in order. */
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

/** The administrator's credentials are those of every controller: what they do to another one, they do as its leader. */
function actorOf({ by, via, resource, name }: Write): 'node' | 'self' | 'leader' {
  if (by.startsWith('system:node:')) return 'node';
  return resource.startsWith('controlnodes') && via === name ? 'self' : 'leader';
}

/** Of the signal in them: `none` where it has no status yet, `no signal` where there is none. */
export function statusOf(annotations: Readonly<Record<string, string>>): string {
  const signal = decodeSignal(annotations);
  return signal === undefined ? 'no signal' : (signal.status?.status ?? 'none');
}

/** Targets in alphabetical order: a list that was selected comes in any order. */
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
