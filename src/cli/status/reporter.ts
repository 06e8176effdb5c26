/** Owns how a watch is told: in place on a terminal, line by line into a pipe, or as a row of documents. */
import { type Output, Screen } from '../output.ts';
import { changesBetween } from './changes.ts';
import { type Form, render, renderLines } from './render.ts';
import type { StatusView } from './view.ts';

export type Tell = (view: StatusView, now: number) => Promise<void>;

export function reporter(output: Output, form: Form): Tell {
  if (form === 'json' || form === 'yaml') return tellDocuments(output, form);
  if (!output.isTerminal) return tellLines(output);
  const screen = new Screen(output);
  return async (view, now) => await Promise.resolve(screen.draw(renderLines(view, form, now, output)));
}

/** One JSON object a line, or one YAML document, whenever it differs from the last one. */
function tellDocuments(output: Output, form: 'json' | 'yaml'): Tell {
  let last = '';
  return async (view, now) => {
    const yaml = async (): Promise<string> => `---\n${await render(view, form, now, output)}`;
    const text = form === 'json' ? `${JSON.stringify(view)}\n` : await yaml();
    if (text !== last) output.write(text);
    last = text;
  };
}

function tellLines(output: Output): Tell {
  let before: StatusView | undefined;
  return async (view, now) => {
    const lines = changesBetween(before, view, now);
    before = view;
    await Promise.resolve(output.write(lines.map((line) => `${line}\n`).join('')));
  };
}
