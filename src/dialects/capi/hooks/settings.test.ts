/** Shows which settings of an ExtensionConfig are refused, instead of being ignored without a word. */
import { expect, test } from 'vitest';
import { buildTriple } from '../../../../test/support/capi/triples.ts';
import { answerCan, MACHINE_SHAPE } from './can-update.ts';
import { judgeSettings } from './settings.ts';

test.each<[Record<string, string>, string]>([
  [{ partial: 'Deny' }, 'the setting partial is "Deny", expected allow or deny'],
  [
    { disableInPlaceUpdates: 'True' },
    'the setting disableInPlaceUpdates is "True", expected true or false',
  ],
  [
    { allowedVersionRules: 'SkippedMinor, Downgrades' },
    'the setting allowedVersionRules is "Downgrades", expected SkippedMinor or Downgrade or KubeletAhead',
  ],
])('the setting %j is refused, so that Cluster API replaces no Machine', (settings, problem) => {
  expect(() => judgeSettings(settings)).toThrow(problem);
  const current = buildTriple({ machine: { version: 'v1.35.2' } });
  const desired = buildTriple({ machine: { version: 'v1.35.3' } });
  expect(() =>
    answerCan('CanUpdateMachine', MACHINE_SHAPE, { settings, current, desired }),
  ).toThrow(problem);
});

test.each<Record<string, string>>([
  {},
  { partial: 'deny' },
  { partial: '', disableInPlaceUpdates: 'false' },
  { allowedVersionRules: 'SkippedMinor,Downgrade , KubeletAhead,' },
  { somebody: 'Else' },
])('the setting %j is accepted', (settings) => {
  expect(() => judgeSettings(settings)).not.toThrow();
});
