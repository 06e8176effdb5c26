/** One kubelet writes the last time that a computer can hold: `refit status` and `refit why` ended with an internal error for everybody. */
import { describe, expect, test } from 'vitest';
import { renderPlan } from '../../src/cli/status/text.ts';
import { whyLines } from '../../src/cli/why/command.ts';
import { ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import { buildNode } from '../builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../builders/plans.ts';
import { MINUTE, T0 } from '../builders/times.ts';
import { lookAt, recorded, signalled, statusOf } from '../builders/views.ts';

const TIMES = ['+275760-09-13T00:00:00Z', '-271821-04-20T00:00:00Z', '9999-12-31T23:59:59Z', '0000-00-00', 'never'];
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
      expect(plans.flatMap((each) => renderPlan(each, 'wide', now, MEDIUM)).join('\n')).toContain('w2');
      expect(whyLines(view, 'w1', now, MEDIUM).join('\n')).toContain('w1');
    }
  });
});
