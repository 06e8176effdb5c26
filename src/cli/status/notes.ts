/** Owns what stands above all plans: that nobody carries them out, or that all this is old. */
import { CONTROLLER_DIALECTS } from '../../dialects/registry.ts';
import { age, wrapped } from '../phrases.ts';
import type { Medium } from './medium.ts';
import type { PlanView, StatusView } from './view.ts';

/** What is looked at: all of a status, or as much of a preview. */
export interface Noted extends Pick<StatusView, 'leader' | 'silentSince'> {
  readonly plans: readonly Pick<PlanView, 'phase' | 'dialect'>[];
}

export function renderNotes(view: Noted, now: number, { paint, width }: Medium): string[] {
  return noteLines(view, now)
    .flatMap((line) => wrapped(line, width))
    .map((line) => paint('yellow', line));
}

export function noteLines(view: Noted, now: number): string[] {
  return notesOf(view).map(({ text, since }) => (since === undefined ? text : `${text} (for ${age(since, now)})`));
}

export interface Note {
  readonly text: string;
  /** RFC 3339. */
  readonly since?: string;
}

const LATE = 'The leading controller was not heard of in time, or clocks differ: another one takes over, if one runs';

export function notesOf({ leader, silentSince, plans }: Noted): Note[] {
  const notes: Note[] = [];
  if (silentSince !== undefined) {
    notes.push({ text: 'The API server does not answer: what follows is old', since: silentSince });
  } else if (plans.some(isOpen)) {
    const advice = 'nothing moves until a `refit controller` runs';
    if (leader.state === 'none') notes.push({ text: `No controller leads: ${advice}`, ...sinceOf(leader) });
    if (leader.state === 'late') notes.push({ text: LATE, since: leader.since });
    if (leader.state === 'silent')
      notes.push({ text: `The leading controller is silent: ${advice}`, since: leader.since });
  }
  return notes;
}

function sinceOf({ since }: { readonly since?: string }): { since?: string } {
  return since === undefined ? {} : { since };
}

/** Of plans that others carry out, nothing is known about who leads. */
function isOpen({ phase, dialect }: Noted['plans'][number]): boolean {
  const isOurs = CONTROLLER_DIALECTS.some(({ name }) => name === dialect);
  return isOurs && (phase === 'new' || phase === 'running');
}
