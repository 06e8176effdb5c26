/** Tests that the checks detect a wrong record: a target has an incorrect state, no state, or two states. */
import { expect, test } from 'vitest';
import { OLD } from '../../model/cluster.ts';
import { V2 } from '../../model/configure.ts';
import { FakeClock } from '../../support/clock/fake-clock.ts';
import { LabHost } from './lab-host.ts';
import { type Told, untruths } from './told-record.ts';

const host = (name: string, version: string): LabHost =>
  new LabHost(
    name,
    version,
    new FakeClock(),
    () => 'good',
    () => undefined,
  );
const told = (name: string, state: string): Told => ({ kind: 'k0supdate', name, state });
const HOSTS = [host('w1', V2), host('w2', OLD)];
const TRUE = [told('w1', 'SignalCompleted'), told('w2', 'SignalApplyFailed')];

test.each([
  ['all as it is', TRUE, []],
  ['one not at all', TRUE.slice(1), ['k0supdate of w1 is done, and told as ']],
  [
    'one twice',
    [...TRUE, told('w2', 'SignalPending')],
    ['k0supdate of w2 is not done, and told as SignalApplyFailed and SignalPending'],
  ],
  [
    'one as pending that is done',
    [told('w1', 'SignalPending'), ...TRUE.slice(1)],
    ['k0supdate of w1 is done, and told as SignalPending'],
  ],
  [
    'one as done that is not',
    [...TRUE.slice(0, 1), told('w2', 'SignalCompleted')],
    ['k0supdate of w2 is not done, and told as SignalCompleted'],
  ],
  ['one that nobody knows', [...TRUE, told('w3', 'SignalPending')], ['k0supdate of w3 is told']],
])('%s', (_name, record, wanted) => {
  expect(untruths(record, 'k0supdate', HOSTS)).toEqual(wanted);
});

test('a bundle counts where it was placed', () => {
  const hosts = [host('w1', OLD), host('w2', V2)];
  hosts[0]?.bundles.add(V2);
  const record = ['w1', 'w2'].map(
    (name): Told => ({ kind: 'airgapupdate', name, state: 'SignalCompleted' }),
  );
  expect(untruths(record, 'airgapupdate', hosts)).toEqual([
    'airgapupdate of w2 is not done, and told as SignalCompleted',
  ]);
});
