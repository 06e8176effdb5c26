/** Owns the output forms of `refit status`: text, wide, json and yaml. */

import type { Form } from './forms.ts';
import { paintForTerminal, paintPlain, renderPlan, renderTargets } from './text.ts';
import { type PlanView } from './view.ts';

/** `now` in milliseconds since the epoch: ages are told in text only, so that json and yaml are stable. */
export async function render(views: readonly PlanView[], form: Form, now: number, coloured: boolean): Promise<string> {
  if (form === 'json') return `${JSON.stringify({ plans: views }, undefined, 2)}\n`;
  if (form === 'yaml') return (await import('yaml')).stringify({ plans: views });
  return `${renderLines(views, form, now, coloured).join('\n')}\n`;
}

export function renderLines(
  views: readonly PlanView[],
  form: 'text' | 'wide',
  now: number,
  coloured: boolean,
): string[] {
  if (views.length === 0) return ['There is no plan.'];
  const paint = coloured ? paintForTerminal : paintPlain;
  return views.flatMap((view) => {
    const targets = form === 'wide' ? renderTargets(view, now).map((line) => `  ${line}`) : [];
    return [...renderPlan(view, now, paint), ...targets];
  });
}
