/** Proves that patches are applied exactly as callers apply them. */
import { describe, expect, test } from 'vitest';
import { jsonPatch, mergePatch } from '../../../../../test/support/capi/triples.ts';
import type { Patch } from '../../../../api/capi/hooks.ts';
import type { Json } from '../../../../util/json.ts';
import { applyPatch } from './hook-patch.ts';

const values = (count: number): number[] => Array.from({ length: count }, () => 0);

describe('patches of others', () => {
  const list = { a: [1, 2, 3] };
  test.each<[string, Json, Patch, Json]>([
    [
      'add to the end of a list',
      list,
      jsonPatch({ op: 'add', path: '/a/-', value: 4 }),
      { a: [1, 2, 3, 4] },
    ],
    [
      'add into a list',
      list,
      jsonPatch({ op: 'add', path: '/a/1', value: 9 }),
      { a: [1, 9, 2, 3] },
    ],
    [
      'replace in a list',
      list,
      jsonPatch({ op: 'replace', path: '/a/1', value: 9 }),
      { a: [1, 9, 3] },
    ],
    ['remove from a list', list, jsonPatch({ op: 'remove', path: '/a/0' }), { a: [2, 3] }],
    ['replace the whole', list, jsonPatch({ op: 'replace', path: '', value: {} }), {}],
    ['test', { a: 1 }, jsonPatch({ op: 'test', path: '/a', value: 1 }), { a: 1 }],
    ['nothing', list, jsonPatch(), list],
    ['merge: null takes away', { a: 1, b: 2 }, mergePatch({ a: null }), { b: 2 }],
    ['merge: lists are replaced', list, mergePatch({ a: [4] }), { a: [4] }],
    ['merge: as many as 5000 values', list, mergePatch({ a: values(4998) }), { a: values(4998) }],
    ['merge: an empty text', list, { patchType: 'JSONMergePatch', patch: '' }, list],
  ])('%s', (_name, object, patch, wanted) => {
    expect(applyPatch(object, patch)).toEqual(wanted);
  });

  test.each<[string, Patch, string]>([
    [
      'a place that is not there',
      jsonPatch({ op: 'replace', path: '/b', value: 1 }),
      'Value required at path: /b',
    ],
    ['nothing to take away', jsonPatch({ op: 'remove', path: '/b' }), 'Value required at path: /b'],
    [
      'a parent that is not there',
      jsonPatch({ op: 'add', path: '/b/c', value: 1 }),
      'Value required at path: /b/c',
    ],
    [
      'beyond the list',
      jsonPatch({ op: 'add', path: '/a/4', value: 1 }),
      'does not apply: Value required at path: /a/4',
    ],
    ['another value', jsonPatch({ op: 'test', path: '/a', value: 1 }), 'Test failed: 1,2,3 != 1'],
    ['an unknown operation', jsonPatch({ op: 'set', path: '/a' }), '0.op: '],
    ['move', jsonPatch({ op: 'move', from: '/a', path: '/b' }), '0.op: '],
    ['copies, which double', jsonPatch({ op: 'copy', from: '/a', path: '/b' }), '0.op: '],
    [
      'too many',
      jsonPatch(...Array.from({ length: 1001 }, () => ({ op: 'remove', path: '/a' }))),
      'the whole: Too big',
    ],
    [
      'an unknown type',
      { patchType: 'Merge' as 'JSONPatch', patch: 'e30=' },
      'patchType "Merge" is unknown',
    ],
    ['no pointer', jsonPatch({ op: 'add', path: 'a', value: 1 }), '0.path: '],
    [
      'one operation that applies and one that does not',
      jsonPatch({ op: 'remove', path: '/a' }, { op: 'remove', path: '/b' }),
      'does not apply: Value required at path: /b',
    ],
    [
      'more levels than fit on the stack',
      {
        patchType: 'JSONMergePatch',
        patch: Buffer.from('['.repeat(100_000) + ']'.repeat(100_000)).toString('base64'),
      },
      'its patch is nested too deeply',
    ],
    ['more than 5000 values', mergePatch({ a: values(4999) }), 'more than 5000 values'],
  ])('%s: refused', (_name, patch, message) => {
    expect(() => applyPatch(list, patch)).toThrow(message);
  });
});
