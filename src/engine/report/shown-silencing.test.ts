/** Tests what commands read from a NodeRollout about the silences of a plan. */
import { expect, test } from 'vitest';
import { later } from '../../../test/support/clock/times.ts';
import type { NodeRollout, NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import { silencingIn } from './shown-silencing.ts';

function shownWith(status: NodeRolloutStatus | undefined): NodeRollout {
  const plan = { apiVersion: 'v1', kind: 'Plan', name: 'a', uid: 'uid' };
  return { metadata: { name: 'a' }, spec: { plan }, ...(status === undefined ? {} : { status }) };
}

const READY = { type: 'Ready', status: 'True', reason: 'x', message: 'ready' } as const;
const SILENCED = { type: 'Silenced', status: 'True', reason: 'AlertsSilenced' } as const;
const TIME = { lastTransitionTime: later(0) };
const SILENCE = { node: 'w1', silence: 'nodes', server: 'am:9093', durationSeconds: 300 };

test('the condition Silenced says whether alerts are silenced, and since when', () => {
  const good = { conditions: [READY, { ...SILENCED, ...TIME, message: 'fine' }] };
  expect(silencingIn(shownWith(good), 'uid')).toEqual({
    isGood: true,
    message: 'fine',
    since: later(0),
  });
  const bad = { ...SILENCED, status: 'False', ...TIME, message: 'no answer' } as const;
  expect(silencingIn(shownWith({ conditions: [bad], silences: [SILENCE] }), 'uid')).toEqual({
    isGood: false,
    message: 'no answer',
    since: later(0),
    silences: [SILENCE],
  });
});

test('a condition without words has an empty message', () => {
  expect(silencingIn(shownWith({ conditions: [SILENCED] }), 'uid')).toEqual({
    isGood: true,
    message: '',
    since: undefined,
  });
});

test('nothing is known without the condition, without a NodeRollout, and about another plan', () => {
  const good = shownWith({ conditions: [{ ...SILENCED, message: 'fine' }] });
  expect(silencingIn(good, 'another-uid')).toBeUndefined();
  expect(silencingIn(good, undefined)).toBeUndefined();
  expect(silencingIn(shownWith({ conditions: [READY] }), 'uid')).toBeUndefined();
  expect(silencingIn(shownWith({}), 'uid')).toBeUndefined();
  expect(silencingIn(shownWith(undefined), 'uid')).toBeUndefined();
  expect(silencingIn(undefined, undefined)).toBeUndefined();
});
