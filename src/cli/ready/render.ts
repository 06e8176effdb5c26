/** Writes the result of `refit ready` as text. */
import {
  CHECK_NAMES,
  CHECKS,
  countOf,
  type FindingState,
  type ReadyFinding,
  type ReadyReport,
} from '../../ready/finding.ts';
import { capitalized, counted, listed } from '../../util/phrases.ts';
import { type Output } from '../output.ts';
import { wrapped } from '../phrases.ts';

/** The order in which findings are shown. */
export const ORDER: readonly FindingState[] = ['blocker', 'unknown', 'warning', 'ok'];

export function renderReady(report: ReadyReport, { size }: Pick<Output, 'size'>): string {
  const { columns } = size();
  const { from, to, findings } = report;
  const present = from.length === 0 ? 'this cluster' : `this cluster (${listed(from)})`;
  const lines = [`Can ${present} take ${to}?`, ''];
  for (const check of CHECK_NAMES) {
    const own = findings.filter((each) => each.check === check);
    lines.push(`${check}: ${CHECKS[check]}`);
    for (const state of ORDER)
      for (const finding of own.filter((each) => each.state === state))
        lines.push(...findingLines(finding, columns));
    lines.push('');
  }
  return `${[...lines, verdictOf(report)].join('\n')}\n`;
}

/** The number of characters before the text of a finding. */
const INDENT = 11;

/** Returns what was found about which object, the cure, and the reason of somebody who accepted it. */
export function sentenceOf({ object, message, cure, accepted }: ReadyFinding): string {
  const subject = object === undefined ? '' : `${object}: `;
  const help = cure === undefined ? '' : `; ${cure}`;
  const reason = accepted === undefined ? '' : ` (accepted: ${accepted})`;
  return `${subject}${message}${help}${reason}`;
}

function findingLines(finding: ReadyFinding, columns: number): string[] {
  const { state } = finding;
  const lines = wrapped(sentenceOf(finding), columns - INDENT);
  return lines.map((line, index) =>
    index === 0
      ? `  ${state.padEnd(INDENT - 2)}${line}`
      : `${' '.repeat(INDENT)}${line.trimStart()}`,
  );
}

/** Returns one line: whether the cluster is ready, and how many findings there are. */
export function verdictOf(report: ReadyReport): string {
  const blockers = countOf(report, 'blocker');
  const unknown = countOf(report, 'unknown');
  const warnings = countOf(report, 'warning');
  const counts = [
    counted(blockers, 'blocker'),
    counted(warnings, 'warning'),
    counted(unknown, 'unanswered question'),
  ].join(', ');
  if (blockers > 0) return capitalized(`not ready for ${report.to}: ${counts}.`);
  if (unknown > 0) return capitalized(`perhaps ready for ${report.to}: ${counts}.`);
  return capitalized(`ready for ${report.to}: ${counts}.`);
}
