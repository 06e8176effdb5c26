/** Writes a report as Markdown. */
import { formatDuration } from '../../util/duration.ts';
import type { NodeState, PlanState } from '../dashboard/state.ts';
import type { Report } from './report.ts';

export function markdownOf({ at, plan, missing }: Report): string {
  const parts = [
    `# ${escaped(plan.title)}`,
    `${plan.phase} ${plan.done}/${plan.total}${plan.versions === '' ? '' : `, to ${escaped(plan.versions)}`}. ${timesOf(plan)} The cluster was read at ${at}.`,
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
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function timesOf({ started, ended }: PlanState): string {
  if (ended === undefined) return `Started at ${started}.`;
  const took = formatDuration(Date.parse(ended) - Date.parse(started));
  return `Started at ${started}, ended at ${ended}, after ${took}.`;
}

function section(heading: string, lines: readonly string[]): string {
  if (lines.length === 0) return '';
  return [`## ${escaped(heading)}`, '', ...lines.map((line) => `* ${escaped(line.trim())}`)].join(
    '\n',
  );
}

function tableOf(nodes: readonly NodeState[]): string {
  if (nodes.length === 0) return '';
  const rows = nodes.map(
    ({ name, role, from = '', version, state, since, message }) =>
      `| ${[name, role, from, version, state, since, message].map(cell).join(' | ')} |`,
  );
  return [
    '## Nodes',
    '',
    '| node | role | before | wanted | state | since | message |',
    '|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

function cell(text: string): string {
  return escaped(text).replaceAll('|', String.raw`\|`);
}

/** Escapes text from the cluster, so that it is never Markdown or HTML, and so that an address in it does not become a link. */
function escaped(text: string): string {
  return (
    text
      .replaceAll(/[\n\r]+/g, ' ')
      .replaceAll(/[\\`*_[\]#~]/g, String.raw`\$&`)
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('://', '&#58;//')
      .replaceAll('@', '&#64;')
      .replaceAll(/\bwww\./gi, (found) => `${found.slice(0, -1)}&#46;`)
      // At the beginning of a line, these characters would begin a list.
      .replace(/^(\d{0,9})([-+.)])/, String.raw`$1\$2`)
  );
}
