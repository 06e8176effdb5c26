/** The output formats of `refit status`, once or as a watch: text, wide, json and yaml. */
import { type Medium, mediumOf, type Output, Screen } from '../output.ts';
import { wrapped } from '../phrases.ts';
import { changesBetween } from './changes.ts';
import { type Noted, noteLines } from './notes.ts';
import { renderPlan } from './text.ts';
import type { StatusView } from './view.ts';

export type Form = 'text' | 'wide' | 'json' | 'yaml';

type Shape = Pick<Output, 'hasColours' | 'size'>;

/** `now` in milliseconds since the epoch. Only text has ages, so that json and yaml are stable. */
export async function render(view: StatusView, form: Form, now: number, shape: Shape): Promise<string> {
  if (form === 'json') return `${JSON.stringify(view, undefined, 2)}\n`;
  if (form === 'yaml') return (await import('yaml')).stringify(view, { lineWidth: 0 });
  return `${renderLines(view, form, now, shape).join('\n')}\n`;
}

function renderLines(view: StatusView, form: 'text' | 'wide', now: number, shape: Shape): string[] {
  const medium = mediumOf(shape);
  const notes = renderNotes(view, now, medium);
  if (view.plans.length === 0) return [...notes, 'There is no plan.'];
  const blocks = view.plans.map((plan) => renderPlan(plan, form, now, medium));
  return [...notes, ...blocks.flatMap((block, index) => (index === 0 ? block : ['', ...block]))];
}

export function renderNotes(view: Noted, now: number, { paint, width }: Medium): string[] {
  return noteLines(view, now)
    .flatMap((line) => wrapped(line, width))
    .map((line) => paint('yellow', line));
}

export type Show = (view: StatusView, now: number) => Promise<void>;

/** Shows each view of a watch: redrawn on a terminal, as lines of changes in a pipe, or as one document after the other. */
export function watchWriter(output: Output, form: Form): Show {
  if (form === 'json' || form === 'yaml') return writeDocuments(output, form);
  if (!output.isTerminal) return writeChanges(output);
  const screen = new Screen(output);
  return async (view, now) => await Promise.resolve(screen.draw(renderLines(view, form, now, output)));
}

/** One JSON object a line, or one YAML document, each time it differs from the last. */
function writeDocuments(output: Output, form: 'json' | 'yaml'): Show {
  let last = '';
  return async (view, now) => {
    const yaml = async (): Promise<string> => `---\n${await render(view, form, now, output)}`;
    const text = form === 'json' ? `${JSON.stringify(view)}\n` : await yaml();
    if (text !== last) output.write(text);
    last = text;
  };
}

function writeChanges(output: Output): Show {
  let before: StatusView | undefined;
  return async (view, now) => {
    const lines = changesBetween(before, view, now);
    before = view;
    await Promise.resolve(output.write(lines.map((line) => `${line}\n`).join('')));
  };
}
