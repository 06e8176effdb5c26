/** Tests the pages about policies: the parser accepts their examples, and their defaults are the defaults of the code. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { readPolicy } from '../../src/engine/policy/read-policy.ts';
import {
  AGENT_DEFAULTS,
  DEFAULT_POLICY,
  type TimedStep,
} from '../../src/engine/policy/rollout-policy.ts';
import { parseDuration } from '../../src/util/duration.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { guideText } from './tree.ts';

const PAGES = guideText('policy');

const examples = [...PAGES.matchAll(/^```yaml\n(.*?)^```$/gms)].map(
  ([, text = '']) => (parse(text) as { spec: UpgradePolicySpec }).spec,
);
const switches = [...PAGES.matchAll(/`((?:drain|versions|deadlines): \{.*?\})`/g)].map(
  ([, text = '']) => parse(text) as UpgradePolicySpec,
);

test.each([...examples, ...switches])('example %#: %j', (spec) => {
  expect(readPolicy(buildUpgradePolicy('example', spec)).problems).toEqual([]);
});

test('there are examples of both kinds', () => {
  expect(examples.length).toBeGreaterThan(3);
  expect(switches.length).toBeGreaterThan(3);
});

/** The default in the third cell of the field's row. */
function told(field: string): number | undefined {
  const row = PAGES.split('\n').find((line) => line.startsWith(`| \`${field}\` |`)) ?? '';
  return parseDuration(/^\w+/.exec(row.split('|')[3]?.trim() ?? '')?.[0] ?? '');
}

test.each<[TimedStep, number]>([
  ['answer', DEFAULT_POLICY.stepDeadlines.answer],
  ['download', DEFAULT_POLICY.stepDeadlines.download],
  ['drain', DEFAULT_POLICY.stepDeadlines.drain],
  ['apply', DEFAULT_POLICY.stepDeadlines.apply],
  ['restart', AGENT_DEFAULTS.restartTimeoutMs],
  ['ready', DEFAULT_POLICY.stepDeadlines.ready],
])('the deadline of %s is the one that holds', (step, milliseconds) =>
  expect(told(step)).toBe(milliseconds),
);

test('the soak is the one that holds', () => {
  expect(PAGES).toContain(`\`soak\` (${AGENT_DEFAULTS.soakMs / 1000}s)`);
});
