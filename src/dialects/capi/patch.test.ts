/** Proves that patches are written and applied exactly. */
import { assert, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyObject } from '../../../test/capi/arbitrary-json.ts';
import { jsonPatch, mergePatch } from '../../../test/capi/triples.ts';
import type { Patch } from '../../api/capi/hooks.ts';
import type { Json } from '../../util/json.ts';
import { type Change, differences } from './json-diff.ts';
import { applyPatch, writePatch } from './patch.ts';

test.each<[string, Json, Json, Change[]]>([
  ['nothing', { a: 1 }, { a: 1 }, []],
  ['a value', { a: 1, b: 1 }, { a: 2, b: 1 }, [{ path: ['a'], from: 1, to: 2 }]],
  ['a value further down', { a: { b: 1 } }, { a: { b: 2 } }, [{ path: ['a', 'b'], from: 1, to: 2 }]],
  ['a list is one change', { a: [1, 2] }, { a: [1, 3] }, [{ path: ['a'], from: [1, 2], to: [1, 3] }]],
  [
    'what is added comes leaf by leaf',
    {},
    { a: { b: 1, c: 2 } },
    [
      { path: ['a', 'b'], from: undefined, to: 1 },
      { path: ['a', 'c'], from: undefined, to: 2 },
    ],
  ],
  ['what is taken away goes at once', { a: { b: 1 } }, {}, [{ path: ['a'], from: { b: 1 }, to: undefined }]],
  ['absent is not empty', {}, { a: {} }, [{ path: ['a'], from: undefined, to: {} }]],
  ['an object that was a text', { a: 'x' }, { a: { b: 1 } }, [{ path: ['a'], from: 'x', to: { b: 1 } }]],
  ['a name that every object has', {}, { constructor: 1 }, [{ path: ['constructor'], from: undefined, to: 1 }]],
])('the difference: %s', (_name, from, to, changes) => {
  expect(differences(from, to)).toEqual(changes);
});

const text = ({ patchType, patch }: Patch): string => `${patchType} ${Buffer.from(patch, 'base64').toString()}`;

test.each<[string, Json, Json, string]>([
  ['a value', { spec: { version: 'a' } }, { spec: { version: 'b' } }, 'JSONMergePatch {"spec":{"version":"b"}}'],
  ['a new branch', {}, { a: { b: 1 } }, 'JSONMergePatch {"a":{"b":1}}'],
  ['a list', { a: [1] }, { a: [2] }, 'JSONPatch [{"op":"add","path":"/a","value":[2]}]'],
  ['a removal', { a: 1 }, {}, 'JSONPatch [{"op":"remove","path":"/a"}]'],
  ['an object that is emptied', { a: { b: 1 } }, { a: {} }, 'JSONPatch [{"op":"remove","path":"/a/b"}]'],
  [
    'a list in a new branch, under names that need an escape',
    {},
    { 'a/b': { 'c~d': [] } },
    'JSONPatch [{"op":"add","path":"/a~1b","value":{}},{"op":"add","path":"/a~1b/c~0d","value":[]}]',
  ],
])('is written for %s', (_name, from, to, wanted) => {
  const patch = writePatch(from, differences(from, to));
  expect(text(patch)).toBe(wanted);
  expect(applyPatch(from, patch)).toEqual(to);
});

test('a patch for the difference of any two objects leads from one to the other', () => {
  assert(
    property(anyObject, anyObject, (from, to) => {
      expect(applyPatch(from, writePatch(from, differences(from, to)))).toEqual(to);
    }),
  );
});

describe('patches of others', () => {
  const list = { a: [1, 2, 3] };
  test.each<[string, Json, Patch, Json]>([
    ['add to the end of a list', list, jsonPatch({ op: 'add', path: '/a/-', value: 4 }), { a: [1, 2, 3, 4] }],
    ['add into a list', list, jsonPatch({ op: 'add', path: '/a/1', value: 9 }), { a: [1, 9, 2, 3] }],
    ['replace in a list', list, jsonPatch({ op: 'replace', path: '/a/1', value: 9 }), { a: [1, 9, 3] }],
    ['remove from a list', list, jsonPatch({ op: 'remove', path: '/a/0' }), { a: [2, 3] }],
    ['replace the whole', list, jsonPatch({ op: 'replace', path: '', value: {} }), {}],
    ['move', { a: 1 }, jsonPatch({ op: 'move', from: '/a', path: '/b' }), { b: 1 }],
    ['copy', { a: 1 }, jsonPatch({ op: 'copy', from: '/a', path: '/b' }), { a: 1, b: 1 }],
    ['test', { a: 1 }, jsonPatch({ op: 'test', path: '/a', value: 1 }), { a: 1 }],
    ['nothing', list, jsonPatch(), list],
    ['merge: null takes away', { a: 1, b: 2 }, mergePatch({ a: null }), { b: 2 }],
    ['merge: lists are replaced', list, mergePatch({ a: [4] }), { a: [4] }],
    ['merge: an empty text', list, { patchType: 'JSONMergePatch', patch: '' }, list],
  ])('%s', (_name, object, patch, wanted) => {
    expect(applyPatch(object, patch)).toEqual(wanted);
  });

  test.each<[string, Patch, string]>([
    ['a place that is not there', jsonPatch({ op: 'replace', path: '/b', value: 1 }), '"b" does not exist'],
    ['nothing to take away', jsonPatch({ op: 'remove', path: '/b' }), '"b" does not exist'],
    ['a parent that is not there', jsonPatch({ op: 'add', path: '/b/c', value: 1 }), '"b" does not exist'],
    ['beyond the list', jsonPatch({ op: 'add', path: '/a/4', value: 1 }), '"4" is no place in the list'],
    ['another value', jsonPatch({ op: 'test', path: '/a', value: 1 }), 'the test of /a failed'],
    ['an unknown operation', jsonPatch({ op: 'set', path: '/a' }), 'the operation "set" is unknown'],
    ['an unknown type', { patchType: 'Merge' as 'JSONPatch', patch: 'e30=' }, 'patchType "Merge" is unknown'],
    ['no pointer', jsonPatch({ op: 'add', path: 'a', value: 1 }), '"a" is no JSON pointer'],
  ])('%s: refused', (_name, patch, message) => {
    expect(() => applyPatch(list, patch)).toThrow(message);
  });
});
