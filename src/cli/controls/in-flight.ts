/** Owns the sentences about what is under way while an order is given. */
import { listed } from '../phrases.ts';
import { movingLines } from '../status/sentences.ts';
import type { PlanView } from '../status/view.ts';

/** Names that are told. */
const MOST_NAMES = 5;

/** What is under way and finishes, whatever was ordered. */
export function finishing(view: PlanView, now: number): string {
  const moving = movingLines(view, now);
  return moving.length === 0 ? 'Nothing is under way.' : `Under way, and finishing: ${moving.join('; ')}.`;
}

/** Who starts next. */
export function starting({ next }: PlanView): string {
  return next.length === 0 ? 'Nobody is left to start.' : `Next: ${listed(next, MOST_NAMES)}.`;
}

export function titleOf({ kind, name, id }: PlanView): string {
  return `${kind} ${name}${id === '' ? '' : ` (${id})`}`;
}
