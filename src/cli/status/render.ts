/** Owns the output forms of `refit status`: text, wide, json and yaml. */
import type { Output } from '../output.ts';
import { type Medium, mediumOf } from './medium.ts';
import { renderNotes } from './notes.ts';
import { renderPlan } from './text.ts';
import type { PlanView, StatusView } from './view.ts';
import { renderTargets } from './wide.ts';

export type Form = 'text' | 'wide' | 'json' | 'yaml';

type Look = Pick<Output, 'hasColours' | 'size'>;

/** `now` in milliseconds since the epoch: ages are told in text only, so that json and yaml are stable. */
export async function render(view: StatusView, form: Form, now: number, look: Look): Promise<string> {
  if (form === 'json') return `${JSON.stringify(view, undefined, 2)}\n`;
  if (form === 'yaml') return (await import('yaml')).stringify(view, { lineWidth: 0 });
  return `${renderLines(view, form, now, look).join('\n')}\n`;
}

export function renderLines(view: StatusView, form: 'text' | 'wide', now: number, look: Look): string[] {
  const medium = mediumOf(look);
  const notes = renderNotes(view, now, medium);
  if (view.plans.length === 0) return [...notes, 'There is no plan.'];
  const blocks = view.plans.map((plan) => blockOf(plan, form, now, medium));
  return [...notes, ...blocks.flatMap((block, index) => (index === 0 ? block : ['', ...block]))];
}

function blockOf(plan: PlanView, form: 'text' | 'wide', now: number, medium: Medium): string[] {
  const targets = form === 'wide' ? renderTargets(plan, now).map((line) => `  ${line}`) : [];
  return [...renderPlan(plan, now, medium), ...targets];
}
