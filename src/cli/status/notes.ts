/** What stands above all plans: that nobody leads, or that the API server does not answer. */
import { CONTROLLER_DIALECTS, LEADER_LEASE } from '../../dialects/registry.ts';
import { age } from '../phrases.ts';
import { isOpen } from './text.ts';
import type { PlanView, StatusView } from './view.ts';

/** What notes are about: all of a status, or as much of a preview. */
export interface Noted extends Pick<StatusView, 'leader' | 'silentSince'> {
  readonly plans: readonly Pick<PlanView, 'phase' | 'dialect'>[];
}

/** What concerns all plans: `No leader for 5 min: …`. */
export interface Note {
  readonly problem: string;
  /** RFC 3339. */
  readonly since?: string | undefined;
  readonly effect: string;
}

export function notesOf({ leader, silentSince, plans }: Noted): Note[] {
  if (silentSince !== undefined)
    return [
      { problem: 'No answer from the API server', since: silentSince, effect: 'what follows may be out of date.' },
    ];
  const isOurs = ({ dialect }: Noted['plans'][number]): boolean =>
    CONTROLLER_DIALECTS.some((each) => each.name === dialect);
  if (!plans.some((plan) => isOurs(plan) && isOpen(plan))) return [];
  if (leader.state === 'none') {
    const effect = `no refit controller holds lease ${LEADER_LEASE.namespace}/${LEADER_LEASE.name}. Upgrades are stopped.`;
    return [{ problem: 'No leader', since: leader.since, effect }];
  }
  if (leader.state !== 'late' && leader.state !== 'silent') return [];
  const { holder, since } = leader;
  const effect =
    leader.state === 'late'
      ? 'another refit controller takes over, if one runs (or clocks differ).'
      : 'upgrades are stopped until a refit controller runs.';
  return [{ problem: `No renewal by leader ${holder}`, since, effect }];
}

export function noteLines(view: Noted, now: number): string[] {
  return notesOf(view).map(
    ({ problem, since, effect }) => `${problem}${since === undefined ? '' : ` for ${age(since, now)}`}: ${effect}`,
  );
}
