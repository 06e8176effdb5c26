/** Tests which fields count as set by a policy. */
import { expect, test } from 'vitest';
import { fieldsSetIn } from './policy-effects.ts';

test('a field that is false by default is set if it is true', () => {
  expect(fieldsSetIn({ paused: true, payloads: { requireSha256: true } })).toEqual([
    'paused',
    'payloads.requireSha256',
  ]);
  expect(fieldsSetIn({ paused: false, payloads: { requireSha256: false } })).toEqual([]);
});

test('a field that is true by default is set if it is false', () => {
  const off = { enabled: false, force: false, deleteEmptyDirData: false, softTaint: false };
  const fields = ['enabled', 'force', 'deleteEmptyDirData', 'softTaint'];
  expect(fieldsSetIn({ drain: off })).toEqual(fields.map((field) => `drain.${field}`));
  expect(fieldsSetIn({ drain: { enabled: true, force: true } })).toEqual([]);
});

test('a field of several waves is named once', () => {
  expect(fieldsSetIn({ waves: [{ settle: '1m' }, { settle: '2m' }, {}] })).toEqual([
    'waves',
    'waves[].settle',
  ]);
});
