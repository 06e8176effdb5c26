/** Writes a report as Markdown. */
import { formatDuration } from '../../util/duration.ts';
import type { NodeState, PagePlan } from '../dashboard/state.ts';
import { md } from './markdown-tag.ts';
import { Markup } from './markup.ts';
import type { Report } from './report.ts';

export function markdownOf({ at, plan, missing }: Report): string {
  const parts = [
    md`# ${plan.title}`,
    md`${plan.phase} ${plan.done}/${plan.total}${plan.versions === '' ? '' : md`, to ${plan.versions}`}. ${timesOf(plan)} The cluster was read at ${at}.`,
    ...plan.why.map(({ heading, lines }) => section(heading, lines)),
    ...(plan.report ?? []).map(({ heading, lines }) => section(heading, lines)),
    section('Not read', missing),
    section('Held nodes', plan.held),
    section(
      'Health checks',
      plan.checks.map(({ name, state, message }) => `${name}: ${state}. ${message}`),
    ),
    tableOf(plan.nodes),
    section(
      'Runs',
      plan.history.map(
        ({ started, version, phase, done, total, causes }) =>
          `${started} to ${version}: ${[`${phase} ${done}/${total}`, ...causes].join('; ')}`,
      ),
    ),
  ];
  const filled = parts.filter((part) => part.toString() !== '');
  return `${Markup.lines(filled, '\n\n').toString()}\n`;
}

function timesOf({ started, ended }: PagePlan): Markup {
  if (ended === undefined) return md`Started at ${started}.`;
  const took = formatDuration(Date.parse(ended) - Date.parse(started));
  return md`Started at ${started}, ended at ${ended}, after ${took}.`;
}

function section(heading: string, said: readonly string[]): Markup {
  if (said.length === 0) return md``;
  const items = said.map((line) => md`* ${line.trim()}`);
  return Markup.lines([md`## ${heading}`, md``, ...items]);
}

function tableOf(nodes: readonly NodeState[]): Markup {
  if (nodes.length === 0) return md``;
  const rows = nodes.map(
    ({ name, role, from = '', version, state, since, message }) =>
      md`| ${name} | ${role} | ${from} | ${version} | ${state} | ${since} | ${message} |`,
  );
  return Markup.lines([
    md`## Nodes`,
    md``,
    md`| node | role | before | wanted | state | since | message |`,
    md`|---|---|---|---|---|---|---|`,
    ...rows,
  ]);
}
