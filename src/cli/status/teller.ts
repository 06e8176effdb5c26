/** Owns how a watch is told: in place on a terminal, line by line into a pipe, or as a row of documents. */
import { type Output, Screen } from '../output.ts';
import { changesBetween } from './changes.ts';
import type { Form } from './forms.ts';
import { render, renderLines } from './render.ts';
import type { PlanView } from './view.ts';

export type Tell = (views: readonly PlanView[], now: number) => Promise<void>;

export function teller(output: Output, form: Form): Tell {
  if (form === 'json' || form === 'yaml') return tellDocuments(output, form);
  if (!output.isTerminal) return tellLines(output);
  const screen = new Screen(output);
  return async (views, now) => await Promise.resolve(screen.draw(renderLines(views, form, now, true)));
}

/** One JSON object a line, or one YAML document, whenever it differs from the last one. */
function tellDocuments(output: Output, form: 'json' | 'yaml'): Tell {
  let last = '';
  return async (views, now) => {
    const yaml = async (): Promise<string> => `---\n${await render(views, form, now, false)}`;
    const text = form === 'json' ? `${JSON.stringify({ plans: views })}\n` : await yaml();
    if (text !== last) output.write(text);
    last = text;
  };
}

function tellLines(output: Output): Tell {
  let before = new Map<string, PlanView>();
  return async (views, now) => {
    const lines = views.flatMap((view) => changesBetween(before.get(view.name), view, now));
    before = new Map(views.map((view) => [view.name, view]));
    await Promise.resolve(output.write(lines.map((line) => `${line}\n`).join('')));
  };
}
