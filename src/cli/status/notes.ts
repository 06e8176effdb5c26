/** Owns what stands above all plans: that nobody carries them out, or that all this is old. */
import { CONTROLLER_DIALECTS } from '../../dialects/registry.ts';
import { age, wrapped } from '../phrases.ts';
import type { Medium } from './medium.ts';
import type { PlanView, StatusView } from './view.ts';

export function renderNotes(view: StatusView, now: number, { paint, width }: Medium): string[] {
  return notesOf(view)
    .flatMap(({ text, since }) => wrapped(since === undefined ? text : `${text} (for ${age(since, now)})`, width))
    .map((line) => paint('yellow', line));
}

export interface Note {
  readonly text: string;
  /** RFC 3339. */
  readonly since?: string;
}

export function notesOf({ leader, silentSince, plans }: StatusView): Note[] {
  const notes: Note[] = [];
  if (silentSince !== undefined) {
    notes.push({ text: 'The API server does not answer: what follows is old', since: silentSince });
  } else if (plans.some(isOpen)) {
    const advice = 'nothing moves until a `refit controller` runs';
    if (leader.state === 'none') notes.push({ text: `No controller leads: ${advice}`, ...sinceOf(leader) });
    if (leader.state === 'silent')
      notes.push({ text: `The leading controller is silent: ${advice}`, since: leader.since });
  }
  return notes;
}

function sinceOf({ since }: { readonly since?: string }): { since?: string } {
  return since === undefined ? {} : { since };
}

/** Of plans that others carry out, nothing is known about who leads. */
function isOpen({ phase, dialect }: PlanView): boolean {
  const isOurs = CONTROLLER_DIALECTS.some(({ name }) => name === dialect);
  return isOurs && (phase === 'new' || phase === 'running');
}
