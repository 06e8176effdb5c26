/** Tests which part of an invalid object remains, so that the other rules can still be checked on it. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { isAboutRemoved, withoutInvalid } from './without-invalid.ts';

const schema = z.object({
  kind: z.string(),
  spec: z.strictObject({
    count: z.int().exactOptional(),
    windows: z.array(z.strictObject({ start: z.string() })).exactOptional(),
    blackouts: z
      .array(z.strictObject({ from: z.string().regex(/^\d{4}-\d\d-\d\d$/), zone: z.string() }))
      .exactOptional(),
    times: z.strictObject({ from: z.string().regex(/^\d{4}-/) }).exactOptional(),
    drain: z
      .strictObject({ pods: z.strictObject({ name: z.string() }).exactOptional() })
      .exactOptional(),
  }),
});

test.each<[string, unknown, object, readonly string[]]>([
  ['a wrong value', { count: 'x', windows: [] }, { windows: [] }, ['spec.count']],
  ['an unknown field', { count: 1, cuont: 2 }, { count: 1 }, ['spec.cuont']],
  [
    'a wrong item: the whole list, so that no index changes',
    { count: 1, windows: [{ start: 'a' }, 7] },
    { count: 1 },
    ['spec.windows'],
  ],
  [
    'a required field of an item: the list, too',
    { count: 1, windows: [{}] },
    { count: 1 },
    ['spec.windows'],
  ],
  [
    'a required time of an item, for which another one stands in',
    { blackouts: [{ zone: 'a' }, { from: 'soon', zone: 'b' }] },
    {
      blackouts: [
        { zone: 'a', from: '1970-01-01' },
        { zone: 'b', from: '1970-01-01' },
      ],
    },
    ['spec.blackouts[0].from', 'spec.blackouts[1].from'],
  ],
  [
    'a required time and a required text of an item: the list',
    { count: 1, blackouts: [{}] },
    { count: 1 },
    ['spec.blackouts[0].from', 'spec.blackouts'],
  ],
  ['a required time of an object: the object', { times: {} }, {}, ['spec.times']],
  [
    'a required field of an object: the object',
    { drain: { pods: {} } },
    { drain: {} },
    ['spec.drain.pods'],
  ],
])('%s is removed', (_name, spec, left, removed) => {
  expect(withoutInvalid(schema, { kind: 'A', spec })).toEqual({
    value: { kind: 'A', spec: left },
    removed,
  });
});

test.each([
  ['no spec', { kind: 'A' }],
  ['a spec of another type', { kind: 'A', spec: 3 }],
  ['no object', 3],
])('%s: nothing is left', (_name, value) => {
  expect(withoutInvalid(schema, value)).toBeUndefined();
});

test.each([
  ['spec.windows: is empty', true],
  ['UpgradePolicy x: spec.windows[0].length must be a time', true],
  ['spec is empty', true],
  ['spec.windowsill: is wrong', false],
  ['spec.count: is wrong', false],
])('a problem may follow from the removal: %s', (message, isAbout) => {
  expect(isAboutRemoved(message, ['spec.windows[0]'])).toBe(isAbout);
});
