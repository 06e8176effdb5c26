/** Tests that each release of k0s gets the behaviour that it really has. */
import { expect, test } from 'vitest';
import { quirksOf, VARIANTS } from './quirks.ts';

test.each<[version: string, central: boolean, tracker: boolean, link: boolean, airgap: boolean]>([
  [VARIANTS['<=1.34'], false, false, false, true],
  ['v1.35.1+k0s.0', true, false, false, false],
  ['v1.35.3+k0s.0', true, false, false, false],
  [VARIANTS['>=1.35'], true, false, false, true],
  ['v1.36.0+k0s.0', true, false, false, false],
  ['v1.36.3+k0s.0', true, false, false, true],
  [VARIANTS['v1.36.3'], true, true, false, true],
  ['v1.37.0+k0s.0', true, true, true, true],
  // These behave like the newest recorded release.
  ['v0.0.0', true, true, false, true],
  ['edge', true, true, false, true],
])('%s', (version, centralCordoning, restartTracker, replayableApply, airgapOnControllers) => {
  const expected = { centralCordoning, restartTracker, replayableApply, airgapOnControllers };
  expect(quirksOf(version)).toMatchObject(expected);
});

test('only the oldest have plan states of their own', () => {
  const states = { whenNotReady: 'InconsistentTargets', whenGone: 'MissingSignalNode' };
  expect(quirksOf(VARIANTS['<=1.34'])).toMatchObject(states);
  expect(quirksOf(VARIANTS['>=1.35'])).toMatchObject({ whenGone: 'IncompleteTargets' });
  expect(quirksOf(VARIANTS['>=1.35'])).not.toHaveProperty('whenNotReady');
});
