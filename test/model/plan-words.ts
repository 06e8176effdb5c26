/** Reads a plan's status for predicates and people: the recorded state of each target. */
import type { Plan } from '../../src/api/autopilot/plan.ts';

export interface Recorded {
  readonly command: number;
  readonly name: string;
  readonly state: string;
  /** RFC 3339. */
  readonly since: string;
}

export function recordedIn(status: Plan['status']): Recorded[] {
  return (status?.commands ?? []).flatMap(
    ({ id, k0supdate: { controllers = [], workers = [] } = {} }) =>
      [...controllers, ...workers].map(({ name, state, lastUpdatedTimestamp }) => ({
        command: id,
        name,
        state,
        since: lastUpdatedTimestamp,
      })),
  );
}

/** Describes what the later status contains and the earlier status did not. */
export function changeOf(before: Plan, after: Plan): string {
  const known = new Set(recordedIn(before.status).map(textOf));
  const added = recordedIn(after.status)
    .map(textOf)
    .filter((text) => !known.has(text));
  const state = after.status?.state;
  if (state !== before.status?.state) added.push(`plan ${state}`);
  return `records ${added.join(', ') || 'nothing new'}`;
}

function textOf({ command, name, state }: Recorded): string {
  return `${name}${command > 0 ? ` (command ${command})` : ''} ${state}`;
}
