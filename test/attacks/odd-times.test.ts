/**
 * Tests that `refit status` and `refit why` work if a kubelet writes the last time that a computer can represent.
 * Otherwise they would end with an internal error for everybody.
 */
import { describe, expect, test } from 'vitest';
import { renderPlan } from '../../src/cli/status/text.ts';
import { whyLines } from '../../src/cli/why/why-command.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { withStages } from '../../src/engine/model/rollout.ts';
import { DEFAULT_POLICY } from '../../src/engine/policy/rollout-policy.ts';
import { gather } from '../../src/engine/snapshot/gather.ts';
import { ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import { decide } from '../support/builders/decisions.ts';
import { buildNode } from '../support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { lookAt, recorded, signalled, statusOf } from '../support/builders/views.ts';
import { buildWorld } from '../support/builders/worlds.ts';
import { MINUTE, T0 } from '../support/clock/times.ts';

const TIMES = [
  '+275760-09-13T00:00:00Z',
  '-271821-04-20T00:00:00Z',
  '9999-12-31T23:59:59Z',
  '0000-00-00',
  'never',
];
const MEDIUM = { width: 80, paint: (_style: unknown, text: string) => text };

describe.each(TIMES)('%s', (time) => {
  test.each([
    ['SignalSent', 'Downloading'],
    ['SignalSent', 'Cordoning'],
    ['SignalPending', 'Restart'],
    ['SignalCompleted', 'Completed'],
    ['SignalApplyFailed', 'Failed'],
  ])('a node recorded as %s that says %s', async (state, status) => {
    const workers = { ...listed('w1', 'w2'), limits: { concurrent: 2 } };
    const states = recorded({ w1: state, w2: 'SignalPending' });
    const commands = [{ k0supdate: buildUpdate({ targets: { workers } }) }];
    const plan = buildPlan({ commands }, statusOf('SchedulableWait', [], states));
    for (const created of [time, '2026-11-20T08:00:01Z']) {
      const rollout = { [ROLLOUT_ANNOTATION]: `plan-uid/${created}` };
      const w1 = signalled(buildNode('w1'), { created, status, timestamp: time }, rollout);
      const now = T0 + MINUTE;
      const plans = await lookAt([plan], [], [w1, buildNode('w2')], now);
      const view = { plans, leader: { state: 'none' } } as const;
      expect(plans.flatMap((each) => renderPlan(each, 'wide', now, MEDIUM)).join('\n')).toContain(
        'w2',
      );
      expect(whyLines(view, 'w1', now, MEDIUM).join('\n')).toContain('w1');
    }
  });
});

/** `Date.parse` accepts each of these texts as a time, but the API server does not. */
const NO_DATE_TIMES = [
  '2030',
  '+275760-09-13T00:00:00Z',
  'December 24, 2030',
  '2027-02-31T00:00:00Z',
];

test.each(NO_DATE_TIMES)(
  'a signal of %s can be adopted: the record has times that the API server takes',
  (created) => {
    const workers = listed('w1', 'w2');
    const states = recorded({ w1: 'SignalPending', w2: 'SignalPending' });
    const plan = buildPlan(
      { commands: [{ k0supdate: buildUpdate({ targets: { workers } }) }] },
      statusOf('SchedulableWait', [], states),
    );
    const w1 = signalled(buildNode('w1'), { created, status: 'Downloading' });
    const now = T0 + MINUTE;
    const { record } = decide(
      gather(autopilot, plan, buildWorld([], [w1, buildNode('w2')]), now),
      DEFAULT_POLICY,
      now,
    );
    const after = record && autopilot.project(record, plan, now);
    const found = after?.status?.commands[0]?.k0supdate?.workers?.find(({ name }) => name === 'w1');
    expect(found?.state).toBe('SignalSent');
    const time = found?.lastUpdatedTimestamp ?? '';
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(new Date(time).toISOString()).toBe(time.replace('Z', '.000Z'));
  },
);

test('a node that reports 150,000 characters does not fill the Plan, its conditions and the log', () => {
  const word = 'x'.repeat(150_000);
  const w1 = signalled(
    buildNode('w1'),
    { status: word, timestamp: word },
    { [ROLLOUT_ANNOTATION]: 'plan-uid/2026-11-20T08:00:01Z' },
  );
  const workers = listed('w1');
  const plan = buildPlan(
    { commands: [{ k0supdate: buildUpdate({ targets: { workers } }) }] },
    statusOf('SchedulableWait', [], recorded({ w1: 'SignalSent' })),
  );
  const { targets, rollout } = gather(autopilot, plan, buildWorld([], [w1]), T0 + MINUTE);
  const [found] = withStages(rollout).map(({ target }) => targets.get(target.key));
  expect(found?.observation.kind).toBe('working');
  expect(JSON.stringify(found).length).toBeLessThan(5_000);
});
