/** Shows that status and why tell a plan that was paused and then aborted as aborted, because nobody can resume it. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt, recorded, statusOf } from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { ABORT_ANNOTATION, PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import { mediumOf } from '../output.ts';
import { whyLines } from '../why/why-command.ts';
import type { ShownStatus } from './json-form.ts';
import { render } from './render.ts';

const NOW = T0 + 10 * MINUTE;
const LOOK = { hasColours: false, size: () => ({ columns: 200, rows: 24 }) };
const update = buildUpdate({ targets: { workers: listed('w1', 'w2') } });

async function textsWith(annotations: Readonly<Record<string, string>>): Promise<string[]> {
  const states = { w1: 'SignalSent', w2: 'SignalPending' };
  const plan = buildPlan(
    { commands: [{ k0supdate: update }] },
    statusOf('SchedulableWait', [], recorded(states)),
  );
  const plans = await lookAt(
    [{ ...plan, metadata: { ...plan.metadata, annotations } }],
    [],
    ['w1', 'w2'].map((name) => buildNode(name)),
    NOW,
  );
  const status: ShownStatus = { leader: { state: 'held', holder: 'abc', since: later(0) }, plans };
  return [
    render(status, 'text', NOW, LOOK),
    ...[undefined, 'w2'].map((node) => whyLines(status, node, NOW, mediumOf(LOOK)).join('\n')),
  ];
}

test('a plan that was paused and then aborted is told as aborted, and nothing waits for a resumption', async () => {
  const both = { [PAUSE_ANNOTATION]: 'true', [ABORT_ANNOTATION]: 'bad release' };
  for (const text of await textsWith(both)) {
    expect(text).toMatch(/running 0\/2 for .*, aborted/);
    expect(text).not.toMatch(/paused|resumed/);
  }
});

test('a plan that was only paused is told as paused', async () => {
  for (const text of await textsWith({ [PAUSE_ANNOTATION]: 'true' }))
    expect(text).toMatch(/running 0\/2 for .*, paused/);
});
