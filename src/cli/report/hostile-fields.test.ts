/** Shows that no field of a report can contain markup: each text of the report is replaced by a hostile text in turn. */
import { expect, test } from 'vitest';
import { markdownOf } from './markdown.ts';
import type { Report } from './report.ts';
import { svgOf } from './svg.ts';

const HOSTILE = '</text><script>alert("1")</script>|[a](https://evil.example)\n# **b** \u0001';
const time = '2026-11-20T08:00:00Z';
const REPORT = {
  at: time,
  plan: {
    key: 'autopilot//a',
    title: 'Plan a',
    phase: 'done',
    isOpen: false,
    versions: 'v1.36.3',
    done: 1,
    total: 1,
    percent: 100,
    progress: [],
    started: time,
    ended: time,
    chief: '',
    why: [{ heading: 'state', lines: ['done'] }],
    held: ['w1'],
    checks: [{ name: 'pods', state: 'Passing', message: 'fine' }],
    nodes: [
      {
        name: 'w1',
        role: 'worker',
        version: 'v1.36.3',
        phase: 'done',
        state: 'done',
        message: 'fine',
        since: time,
        from: 'v1.35.5',
        steps: [{ word: 'restart', from: 1, to: 2 }],
      },
    ],
    history: [
      { id: 'a', started: time, version: 'v1', phase: 'done', done: 1, total: 1, causes: ['none'] },
    ],
    report: [{ heading: 'Events', lines: ['one'] }],
  },
  versions: [],
  steps: [],
  longest: [],
  failures: [],
  rolledBack: [],
  events: [],
  missing: ['policies'],
} satisfies Report;

type Path = readonly (string | number)[];

function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value === 'string') return [path];
  if (Array.isArray(value)) return value.flatMap((each, index) => pathsOf(each, [...path, index]));
  return Object.entries(Object(value) as object).flatMap(([key, each]) =>
    pathsOf(each, [...path, key]),
  );
}

function replaced(value: unknown, [key, ...rest]: Path): unknown {
  if (key === undefined) return HOSTILE;
  const copy: unknown = structuredClone(value);
  const holder = copy as Record<string | number, unknown>;
  holder[key] = replaced(holder[key], rest);
  return copy;
}

test.each(pathsOf(REPORT).map((path) => [path.join('.'), path] as const))(
  'the field %s cannot put markup into Markdown or SVG',
  (_name, path) => {
    const report = replaced(REPORT, path) as Report;
    const markdown = markdownOf(report);
    expect(markdown).not.toMatch(/<|https:|(?<!\\)\*\*|(?<!\\)\[|\n# (?!Plan)/);
    expect(markdown).not.toContain('\u0001');
    // A table row keeps its seven cells.
    for (const row of markdown.split('\n').filter((line) => line.startsWith('|')))
      expect(row.match(/(?<!\\)\|/g)).toHaveLength(8);
    const drawn = svgOf(report);
    expect(drawn).not.toMatch(/<script|"1"/);
    expect(drawn).not.toContain('\u0001');
  },
);
