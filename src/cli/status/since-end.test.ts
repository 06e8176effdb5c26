import { expect, test } from 'vitest';
import type { StageJson, TargetJson } from './json-form.ts';
import { sinceSection } from './since-end.ts';

const target = (name: string, more: Partial<TargetJson> = {}): TargetJson => ({
  name,
  phase: 'done',
  since: '2026-11-20T08:00:00Z',
  ...more,
});

const stage = (...targets: readonly TargetJson[]): StageJson => ({
  command: 0,
  role: 'worker',
  active: false,
  version: 'v2',
  maxInFlight: 1,
  targets,
});

test('the status of a done plan names the nodes that are gone or run another version since', () => {
  const targets = [target('w1'), target('w2', { gone: true }), target('w3', { runs: 'v3' })];
  expect(sinceSection({ phase: 'done', stages: [stage(...targets)] }).lines).toEqual([
    'w2 does not exist any more',
    'w3 runs v3',
  ]);
});

test.each([
  ['only its last command counts for a node', 'done', [target('w1', { runs: 'v2' })]],
  ['a plan that was edited has a reason of its own', 'edited', []],
] as const)('the status adds nothing about the time since the end: %s', (_name, phase, before) => {
  const last = target('w1', phase === 'edited' ? { runs: 'v3' } : {});
  expect(sinceSection({ phase, stages: [stage(...before), stage(last)] }).lines).toEqual([]);
});
