/** Shows that status and why name the limit that stopped an ended plan before all nodes had started. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { ABORT_ANNOTATION } from '../../engine/model/controls.ts';
import { mediumOf } from '../output.ts';
import { whyLines } from '../why/why-command.ts';
import type { ShownStatus } from './json-form.ts';
import { render } from './render.ts';

const NOW = T0 + 10 * MINUTE;
const LOOK = { hasColours: false, size: () => ({ columns: 200, rows: 24 }) };
const update = buildUpdate({
  targets: { controllers: listed('c1'), workers: listed('w1', 'w2', 'w3') },
});

interface Case {
  readonly state?: string;
  readonly controller?: string;
  readonly workers?: readonly [w1: string, w2: string, w3: string];
  readonly description?: string;
  readonly abort?: string;
  readonly policy?: UpgradePolicySpec;
}

async function look(given: Case): Promise<ShownStatus> {
  const { controller = 'SignalCompleted', description = 'w1: it crashed', policy = {} } = given;
  const [w1, w2, w3] = given.workers ?? ['SignalApplyFailed', 'SignalApplyFailed', 'SignalPending'];
  const status = statusOf(
    given.state ?? 'ApplyFailed',
    recorded({ c1: controller }),
    recorded({ w1, w2, w3 }),
    description,
  );
  const plan = buildPlan({ commands: [{ k0supdate: update }] }, status);
  const annotations = given.abort === undefined ? {} : { [ABORT_ANNOTATION]: given.abort };
  const plans = await lookAt(
    [{ ...plan, metadata: { ...plan.metadata, annotations } }],
    [buildControlNode('c1')],
    ['w1', 'w2', 'w3'].map((name) => buildNode(name)),
    NOW,
    buildViewParts({}, [buildUpgradePolicy('nightly', policy)]),
  );
  return { leader: { state: 'held', holder: 'abc', since: later(0) }, plans };
}

const ONE = { failureBudget: 1 };
const TWO_FAILED =
  '2 nodes failed (w1, w2), more than failureBudget 1 of UpgradePolicy nightly allows, so w3 never started';

test('a used-up budget has a field of its own, and a line in status and why', async () => {
  const view = await look({ policy: ONE });
  expect(view.plans[0]).toMatchObject({ phase: 'failed', stopped: TWO_FAILED });
  const medium = mediumOf(LOOK);
  for (const text of [
    render(view, 'text', NOW, LOOK),
    whyLines(view, undefined, NOW, medium).join('\n'),
    whyLines(view, 'w3', NOW, medium).join('\n'),
  ])
    expect(text).toContain(`\n  stopped ${TWO_FAILED}\n`);
  expect(whyLines(view, 'w1', NOW, medium).join('\n')).not.toContain('stopped');
});

test.each<[string, Case, string]>([
  [
    'a failed controller',
    {
      controller: 'SignalApplyFailed',
      workers: ['SignalPending', 'SignalPending', 'SignalPending'],
      policy: { failureBudget: 9 },
    },
    'a failed controller (c1) stops the plan, even if failureBudget allows a failure, so w1, w2, w3 never started',
  ],
  [
    'a drain that took too long',
    {
      workers: ['SignalApplyFailed', 'SignalCompleted', 'SignalPending'],
      description: 'DrainTooLong: w1: 1 pod is left on node w1',
      policy: { failureBudget: 9, drain: { onDeadline: 'Stop' } },
    },
    'drain.onDeadline: Stop of UpgradePolicy nightly ends the plan at a drain that takes too long, so w3 never started',
  ],
  [
    'a limit that was raised since',
    { policy: { failureBudget: 5 } },
    '2 nodes failed (w1, w2) and the plan ended, although failureBudget 5 of UpgradePolicy nightly allows that now, so w3 never started',
  ],
])('the line about nodes that never started names the cause: %s', async (_name, given, stopped) => {
  expect((await look(given)).plans[0]?.stopped).toBe(stopped);
});

test.each<[string, Case]>([
  [
    'whose targets have all started',
    { workers: ['SignalApplyFailed', 'SignalCompleted', 'SignalApplyFailed'] },
  ],
  ['that was aborted', { abort: 'wrong release', description: 'Aborted: the plan was aborted' }],
  ['whose abort is recorded only', { description: 'Aborted: the plan was aborted: wrong release' }],
  [
    'that was refused at its admission',
    {
      state: 'IncompleteTargets',
      controller: 'SignalPending',
      workers: ['SignalMissingNode', 'SignalPending', 'SignalPending'],
      description: 'w1 does not exist',
    },
  ],
  [
    'that is invalid',
    { state: 'Warning', workers: ['SignalPending', 'SignalPending', 'SignalPending'] },
  ],
  ['that runs', { state: 'SchedulableWait' }],
])('no line about nodes that never started is shown for a plan %s', async (_name, given) => {
  expect((await look({ policy: ONE, ...given })).plans[0]).not.toHaveProperty('stopped');
});
