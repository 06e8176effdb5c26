/**
 * Tests the verdict of the gate if an API server is not ready: with a policy that ends the plan in this case, and
 * without this policy.
 */

import { expect, test } from 'vitest';
import { DOWN, goingBack, input } from '../../../test/support/builders/gate-inputs.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { unanswered } from '../model/asked.ts';
import { because } from '../model/reasons.ts';
import { apiServersReadyAtStart } from './api-servers-ready-at-start.ts';
import { AFTER_TARGET, BEFORE_TARGET } from './registry.ts';
import type { GateInput } from './types.ts';

const NOT_READY = because(
  'ControlPlaneNotReady',
  'the API server of c2 (/readyz says 500) is not ready',
);
const withEnd = (given: GateInput): GateInput => ({
  ...given,
  policy: buildPolicy({ endsNotReady: true }),
});
const SILENT = unanswered({ reason: because('CannotDecide', 'no answer'), recheckMs: 2000 });

test.each<[string, GateInput, object]>([
  ['waits by default', input('controller', {}, [DOWN]), { kind: 'wait', reason: NOT_READY }],
  [
    'ends the plan if the policy says so',
    withEnd(input('controller', {}, [DOWN])),
    { kind: 'stop', reason: NOT_READY, ofPlan: true },
  ],
  [
    'waits with such a policy before anybody has asked',
    withEnd(input('controller')),
    { kind: 'wait', reason: { code: 'ControlPlaneUnknown' } },
  ],
  [
    'waits with such a policy if nobody can tell',
    withParts(withEnd(input('controller')), { cluster: { controlPlane: SILENT } }),
    { kind: 'wait', reason: { code: 'CannotDecide' } },
  ],
  [
    'starts if it goes back and only its own API server is not ready',
    goingBack(input('controller', {}, [{ ...DOWN, name: 'n1' }])),
    { kind: 'pass' },
  ],
  [
    'waits on its way back if the API server of another controller is not ready',
    goingBack(input('controller', {}, [DOWN])),
    { kind: 'wait', reason: NOT_READY },
  ],
  ['starts if it is a worker', withEnd(input('worker', {}, [DOWN])), { kind: 'pass' }],
])('a target whose API servers are not ready %s', (_title, given, expected) => {
  expect(apiServersReadyAtStart.evaluate(given)).toMatchObject(expected);
});

test('the gate is asked before a target starts, and not after its upgrade', () => {
  expect(BEFORE_TARGET).toContain(apiServersReadyAtStart);
  expect(AFTER_TARGET).not.toContain(apiServersReadyAtStart);
});

const ESCAPE = 'the checks are switched off';
const ofServer = (label: string | undefined): GateInput => {
  const given = input('worker', label === undefined ? {} : { labels: { [label]: '' } }, [DOWN]);
  return { ...given, stage: { ...given.stage, serverChecks: { escape: ESCAPE } } };
};
const ROLE = 'node-role.kubernetes.io';

test.each<[string, string | undefined, object]>([
  ['of the control plane', `${ROLE}/control-plane`, { kind: 'wait', reason: NOT_READY }],
  ['of etcd', `${ROLE}/etcd`, { kind: 'wait', reason: NOT_READY }],
  ['of neither', undefined, { kind: 'pass' }],
])(
  'in a stage that checks servers by their labels, a node with the label %s',
  (_name, label, expected) => {
    expect(apiServersReadyAtStart.evaluate(ofServer(label))).toMatchObject(expected);
  },
);

test('the wait of such a node says how the checks are switched off', () => {
  expect(apiServersReadyAtStart.evaluate(ofServer(`${ROLE}/control-plane`))).toMatchObject({
    ends: `every API server answers that it is ready, or ${ESCAPE}`,
  });
});
