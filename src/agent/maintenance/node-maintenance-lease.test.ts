/** Tests the decision who cordons. It depends on the leader's Lease over time, and not on the clocks of the hosts. */

import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import type { Lease } from '../../kube/resources.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';
import { microTime, systemClock } from '../../util/clock.ts';
import { type Cordoner, observeLease } from './node-maintenance.ts';

const START = Date.parse('2026-11-20T08:00:00Z');

/** The Lease at one moment: its holder, its label, and the time of its renewal by the holder's clock. */
interface Look {
  readonly at: number;
  readonly holder?: string;
  readonly label?: string;
  readonly renewed?: number;
  readonly seconds?: number;
  readonly expected: Cordoner;
}

const held = (at: number, renewed: number, expected: Cordoner, more: Partial<Look> = {}): Look => ({
  at,
  renewed,
  expected,
  holder: 'a',
  label: 'a',
  ...more,
});

function leaseOf({ holder, label, renewed, seconds = 60 }: Look): Lease {
  return {
    metadata: {
      name: 'l',
      ...(label !== undefined && { labels: { [CENTRAL_CORDONING_LABEL]: label } }),
    },
    spec: {
      ...(holder !== undefined && { holderIdentity: holder }),
      leaseDurationSeconds: seconds,
      ...(renewed !== undefined && { renewTime: microTime(START + renewed * 1000) }),
    },
  };
}

test.each<[string, Look[]]>([
  ['a leader that says that it drains', [held(0, -2, 'leader')]],
  [
    'a leader that does not say that it drains',
    [{ at: 0, holder: 'a', renewed: -2, expected: 'self' }],
  ],
  [
    'the agent itself cordons the node if the Lease has the label of an earlier leader',
    [held(0, -2, 'self', { label: 'b' })],
  ],
  ['an empty label', [held(0, -2, 'self', { label: '' })]],
  [
    'a lease that was released, with its old label',
    [held(0, -2, 'unknown', { holder: '', label: 'a', seconds: 1 })],
  ],
  ['a lease without a holder, and the empty label', [{ at: 0, label: '', expected: 'unknown' }]],
  ['a lease that ran out long ago', [held(0, -600, 'unknown'), held(5, -600, 'unknown')]],
  ['no time of renewal', [{ at: 0, holder: 'a', label: 'a', expected: 'unknown' }]],
  [
    'a leader whose clock is behind, once it is seen to renew',
    [held(0, -3600, 'unknown'), held(5, -3595, 'leader')],
  ],
  [
    'a leader that dies: for one duration after its last sign',
    [held(0, -2, 'leader'), held(57, -2, 'leader'), held(59, -2, 'unknown')],
  ],
  [
    'a dead leader whose clock was ahead: for no longer than one duration',
    [held(0, 3600, 'leader'), held(59, 3600, 'leader'), held(61, 3600, 'unknown')],
  ],
  [
    'the agent itself cordons the node when a new leader that has not set its label holds the Lease',
    [held(0, -2, 'leader'), held(61, -2, 'unknown'), held(65, 64, 'self', { holder: 'b' })],
  ],
  [
    'a leader that died while nobody looked',
    [held(0, -2, 'leader'), held(7200, 3600, 'unknown'), held(7205, 3600, 'unknown')],
  ],
  [
    'a lease of seconds',
    [held(0, -0.5, 'leader', { seconds: 1 }), held(2, -0.5, 'unknown', { seconds: 1 })],
  ],
])('who cordons and drains by the Lease of the leader: %s', async (_name, looks) => {
  const clock = new FakeClock(START);
  const judge = observeLease(clock);
  const answers: string[] = [];
  for (const look of looks) {
    await clock.advance(look.at * 1000 - clock.monotonic());
    answers.push(judge(leaseOf(look)));
  }
  expect(answers).toEqual(looks.map(({ expected }) => expected));
});

test('without a Lease nobody knows who cordons', () => {
  expect(observeLease(systemClock)(undefined)).toBe('unknown');
});
