/** Tests how the answer of `refit ready` reads. */
import { expect, test } from 'vitest';
import type { ReadyReport } from '../../ready/finding.ts';
import { renderReady } from './render.ts';

const REPORT: ReadyReport = {
  to: 'v1.37.0',
  from: ['v1.36.2', 'v1.36.3'],
  findings: [
    { check: 'versions', state: 'ok', message: 'v1.37.0 may follow v1.36.3' },
    {
      check: 'settings',
      state: 'warning',
      object: 'Node w1',
      message: 'flag --x: gone',
      cure: 'remove it',
      accepted: 'we know',
    },
    { check: 'drains', state: 'warning', message: 'a bare pod' },
    {
      check: 'drains',
      state: 'blocker',
      object: 'PodDisruptionBudget a/b',
      message: 'it never allows an eviction',
      cure: 'change it',
    },
    { check: 'health', state: 'unknown', message: 'you may not read upgradepolicies' },
  ],
};
const rendered = (report: ReadyReport, columns = Number.POSITIVE_INFINITY): string[] =>
  renderReady(report, { size: () => ({ columns, rows: 40 }) }).split('\n');

test('the answer has each check, its blockers first, and a verdict', () => {
  const lines = rendered(REPORT);
  expect(lines[0]).toBe('Can this cluster (v1.36.2, v1.36.3) take v1.37.0?');
  expect(lines).toContain('drains: drains');
  expect(
    lines.indexOf('  blocker  PodDisruptionBudget a/b: it never allows an eviction; change it'),
  ).toBe(lines.indexOf('  warning  a bare pod') - 1);
  expect(lines).toContain('  warning  Node w1: flag --x: gone; remove it (accepted: we know)');
  expect(lines.at(-2)).toBe('Not ready for v1.37.0: 1 blocker, 2 warnings, 1 unanswered question.');
});

test('a long line is broken at the width of the terminal, below its message', () => {
  const lines = rendered(REPORT, 40);
  const [first = '', second = ''] = lines.slice(lines.indexOf('drains: drains') + 1);
  expect(first).toBe('  blocker  PodDisruptionBudget a/b: it');
  expect(second).toMatch(/^ {11}never allows/);
  expect(lines.filter((line) => line.startsWith('  ')).every((line) => line.length <= 40)).toBe(
    true,
  );
});

test('the verdict says perhaps if only a question has no answer, and ready if nothing is wrong', () => {
  const [ok, , , , unknown] = REPORT.findings;
  const of = (...findings: (typeof ok)[]) => ({
    ...REPORT,
    findings: findings.flatMap((each) => each ?? []),
  });
  expect(rendered(of(ok, unknown)).at(-2)).toMatch(/^Perhaps ready for v1\.37\.0: 0 blockers/);
  expect(rendered(of(ok)).at(-2)).toMatch(/^Ready for v1\.37\.0: 0 blockers, 0 warnings/);
});
