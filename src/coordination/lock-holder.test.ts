/** Tests that the name of a holder shows which dialects its installation carries out. */
import { expect, test } from 'vitest';
import { isHolderFor, lockHolder } from './lock-holder.ts';

test('an installation of several dialects is the holder for each of them, and for no other dialect', () => {
  const holder = lockHolder(['autopilot', 'cattle'], { namespace: 'refit-system', name: 'refit' });
  expect(holder).toBe('refit/autopilot+cattle/refit-system/refit');
  expect(['autopilot', 'cattle', 'capi'].map((dialect) => isHolderFor(dialect, holder))).toEqual([
    true,
    true,
    false,
  ]);
});

test.each(['', 'refit', 'w1', 'patcher/autopilot'])('the holder "%s" is not Refit', (holder) => {
  expect(isHolderFor('autopilot', holder)).toBe(false);
});
