/**
 * Tests that a new gate needs only its file and one line in the registry: the engine, `refit status` and `refit why`
 * know no gate by name.
 */
import { basename } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BEFORE_TARGET } from '../../src/engine/gates/registry.ts';
import { type Gate, PASS } from '../../src/engine/gates/types.ts';
import type { TargetFacts } from '../../src/engine/model/facts.ts';
import { because } from '../../src/engine/model/reasons.ts';
import { filesOf, isTest } from '../repo/tree.ts';
import { decide } from '../support/builders/decisions.ts';
import { buildPolicy } from '../support/builders/rollout-policies.ts';
import { buildRollout } from '../support/builders/rollouts.ts';
import { buildSnapshot } from '../support/builders/snapshots.ts';
import { buildStage } from '../support/builders/stages.ts';
import { T0 } from '../support/clock/times.ts';

const OLD = 'v1.20.0';
const REASON = because('Paused', 'w1 has no backup');

/** Adds the gate to the registry until the test ends. */
function register(gate: Gate): void {
  const list = BEFORE_TARGET as Gate[];
  list.push(gate);
  onTestFinished(() => void list.splice(list.indexOf(gate), 1));
}

function decideWith(
  gate: Pick<Gate, 'evaluate'> & Partial<Gate>,
  facts: Record<string, Partial<TargetFacts>> = { w1: {}, w2: {} },
) {
  register({ name: 'toy', ...gate });
  const stage = buildStage('worker', Object.keys(facts), { maxInFlight: 2 });
  return decide(buildSnapshot(buildRollout([stage]), facts), buildPolicy(), T0);
}

test('a wait holds its target back, and its own message says what ends it', () => {
  const { record, waits } = decideWith({
    evaluate: ({ target }) =>
      target.name === 'w1'
        ? { kind: 'wait', reason: REASON, ends: 'the backup is done', recheckMs: 7 }
        : PASS,
  });
  expect(record?.stages[0]?.targets.map(({ state }) => state)).toEqual(['pending', 'intended']);
  expect(waits).toContainEqual(
    expect.objectContaining({
      target: 'w1',
      gate: 'toy',
      reason: REASON,
      ends: 'the backup is done',
    }),
  );
});

test('a wait of the whole rollout is asked for once', () => {
  let asked = 0;
  const { waits } = decideWith({
    ofRollout: true,
    evaluate: ({ target }) => {
      if (target.name !== 'w1') asked++;
      return { kind: 'wait', reason: REASON, ends: 'the backup is done' };
    },
  });
  expect([asked, waits.length]).toEqual([0, 1]);
});

test('a stop of the plan that comes late lets nothing start before it', () => {
  const { record } = decideWith(
    {
      mayRefusePlan: () => true,
      evaluate: ({ facts }) =>
        facts.version === OLD ? { kind: 'stop', reason: REASON, ofPlan: true } : PASS,
    },
    { w1: {}, w2: {}, w3: { version: OLD } },
  );
  expect(record).toMatchObject({ phase: 'invalid', reason: REASON });
});

test('targets with a probe of their own are probed only as many at a time as may start', () => {
  const { probes } = decideWith(
    {
      probesEachTarget: true,
      evaluate: ({ target }) => ({
        kind: 'wait',
        reason: because('DrainPreviewUnknown', `unknown for ${target.name}`),
        ends: 'the API server answers',
        probe: { kind: 'drain-preview', node: target.name },
      }),
    },
    { w1: {}, w2: {}, w3: {}, w4: {} },
  );
  expect(probes).toHaveLength(2);
});

test('no file outside of gates/ imports a gate', () => {
  const gates = filesOf('src/engine/gates/*.ts').filter(({ text }) =>
    /^export const \w+: Gate = /m.test(text),
  );
  expect(gates.length).toBeGreaterThan(10);
  const names = gates.map(({ path }) => basename(path));
  const importers = filesOf('src/**/*.ts')
    .filter((file) => !isTest(file) && !file.path.startsWith('src/engine/gates/'))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/from '[^']*\/gates\/([^']+)'/g)].flatMap(([, file = '']) =>
        names.includes(file) ? [`${path} imports ${file}`] : [],
      ),
    );
  expect(importers).toEqual([]);
});
