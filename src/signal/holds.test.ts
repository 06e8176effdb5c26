/** Tests what the annotation of a hold means, whoever wrote it. */
import { expect, test } from 'vitest';
import { HOLD_ANNOTATION, holdOn, isHeld, longestHold, writeHold } from './holds.ts';

const read = (value?: string) =>
  holdOn({
    metadata: {
      name: 'w1',
      ...(value === undefined ? {} : { annotations: { [HOLD_ANNOTATION]: value } }),
    },
  });

const WHOLE = {
  reason: 'a long job',
  by: 'ada',
  since: '2026-11-20T08:00:00Z',
  until: '2026-11-20T09:00:00Z',
};

test.each<[string, string | undefined, object | undefined]>([
  ['no annotation', undefined, undefined],
  ['taken back by hand', 'false', undefined],
  ['what refit hold writes', writeHold(WHOLE), WHOLE],
  ['nothing but the key', '', {}],
  ['free text', 'do not touch', { reason: 'do not touch' }],
  ['an end that is no time: the hold has no end', '{"until":"tomorrow"}', {}],
  ['members of other types', '{"reason":7,"by":["x"],"until":0}', {}],
  [
    'characters that steer a terminal',
    '{"reason":"a\\u001b[31mb"}',
    { reason: expect.not.stringContaining('\u001b') },
  ],
  ['a list', '[1]', { reason: '[1]' }],
])('%s', (_name, value, expected) => {
  if (expected === undefined) expect(read(value)).toBeUndefined();
  else expect(read(value)).toEqual(expected);
});

test('a hold ends at its end, and without one it does not end', () => {
  const end = Date.parse(WHOLE.until);
  expect([isHeld(WHOLE, end - 1), isHeld(WHOLE, end), isHeld({}, end)]).toEqual([
    true,
    false,
    true,
  ]);
});

test('of two objects of one node, the hold that ends last counts', () => {
  const over = { until: '2026-11-20T07:00:00Z' };
  expect(longestHold([over, WHOLE])).toBe(WHOLE);
  expect(longestHold([WHOLE, {}])).toEqual({});
  expect(longestHold([undefined, over])).toBe(over);
  expect(longestHold([undefined, undefined])).toBeUndefined();
});
