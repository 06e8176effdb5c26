/**
 * Tests that the summary of a run fits a terminal, names the running versions, and gives no advice for a cluster that
 * no longer exists.
 */

import { expect, test } from 'vitest';
import { mediumOf } from '../../src/cli/output.ts';
import type { ShownPlan, TargetJson } from '../../src/cli/status/json-form.ts';
import { textsOf } from '../../test/support/builders/dialects.ts';
import { later } from '../../test/support/clock/times.ts';
import { summarize } from './summary.ts';

const S = 1000;
const SHA = 'a'.repeat(64);
const spent = { Downloading: 2 * S, ApplyingUpdate: S, Restart: 5 * S };
const targets: readonly TargetJson[] = [
  { name: 'worker1', phase: 'done', began: later(0), since: later(8 * S), from: 'v1', spent },
  {
    name: 'worker2',
    phase: 'failed',
    began: later(8 * S),
    since: later(10 * S),
    failure: `sha256 is ${SHA}, wanted ${SHA}`,
  },
];
const stage = {
  command: 0,
  role: 'worker',
  version: 'v2',
  maxInFlight: 1,
  active: false,
  targets,
} as const;
const plan = {
  dialect: 'autopilot',
  texts: textsOf('autopilot'),
  kind: 'Plan',
  name: 'p',
  uid: 'u',
  id: 'i',
  created: later(0),
} as const;
const view: ShownPlan = {
  ...plan,
  phase: 'failed',
  stages: [stage],
  waits: [],
  situations: [],
  next: [],
};
const versions = new Map([
  ['worker1', 'v2'],
  ['worker2', 'v1'],
]);

test.each([60, 80, Number.POSITIVE_INFINITY])(
  '%d columns: a picture, what runs, the waits and the failures',
  (columns) => {
    const medium = mediumOf({ hasColours: false, size: () => ({ columns, rows: 24 }) });
    const waits = [
      `      8 s  2 workers wait until the controllers are done, which takes a while (stages)`,
    ];
    const lines = summarize(view, versions, waits, medium);
    expect(
      lines
        .filter((line) => line.length > Math.min(80, columns))
        .every((line) => line.includes(SHA)),
    ).toBe(true);
    const text = lines.join('\n');
    expect(text).toMatch(/^ {2}● worker1 ░+▓+█+ +8 s$/m);
    // The view does not name the step at which worker2 failed.
    expect(text).toMatch(/^ {2}✗ worker2 +■+ {2}2 s$/m);
    expect(text).toContain(
      '1 node now runs v2, before v1: worker1.\n1 node now runs v1: worker2.\n',
    );
    expect(text).toContain('        8 s  2 workers wait');
    expect(text).toContain('worker2 failed: sha256 is');
    expect(text).not.toMatch(/refit |NODE/);
  },
);
