/** Tests which events of an informer the judge accepts, and that it reports each kind of violation. */
import { expect, test } from 'vitest';
import type { KubeObject } from '../../src/kube/resources.ts';
import { judgeOrder, type OrderJudge } from './order-judge.ts';

const at = (uid: string, version: number): KubeObject => ({
  metadata: { name: 'a', uid, resourceVersion: String(version) },
});

test.each<
  [string, 'final' | 'passing', (handler: OrderJudge['handler']) => void, RegExp | undefined]
>([
  [
    'added, updated, deleted',
    'final',
    (h) => [h.added?.(at('u', 1)), h.updated?.(at('u', 2), at('u', 1)), h.deleted?.(at('u', 3))],
    undefined,
  ],
  [
    'deleted and created anew',
    'final',
    (h) => [h.added?.(at('u', 1)), h.deleted?.(at('u', 1)), h.added?.(at('v', 2))],
    undefined,
  ],
  [
    'out of a selection and into it',
    'passing',
    (h) => [h.added?.(at('u', 1)), h.deleted?.(at('u', 2)), h.added?.(at('u', 3))],
    undefined,
  ],
  [
    'back from the dead',
    'final',
    (h) => [h.added?.(at('u', 1)), h.deleted?.(at('u', 2)), h.added?.(at('u', 3))],
    /returned from the dead/,
  ],
  [
    'added twice',
    'final',
    (h) => [h.added?.(at('u', 1)), h.added?.(at('v', 2))],
    /added while u lives/,
  ],
  [
    'updated across uids',
    'final',
    (h) => [h.added?.(at('u', 1)), h.updated?.(at('v', 2), at('u', 1))],
    /update from u to v/,
  ],
  [
    'updated before it was added',
    'final',
    (h) => h.updated?.(at('u', 2), at('u', 1)),
    /u updated, but undefined lives there/,
  ],
  [
    'an update that changes nothing',
    'final',
    (h) => [h.added?.(at('u', 1)), h.updated?.(at('u', 1), at('u', 1))],
    /an empty update/,
  ],
  [
    'deleted before it was added',
    'final',
    (h) => h.deleted?.(at('u', 2)),
    /u deleted, but undefined lives there/,
  ],
  [
    'a version that goes back',
    'final',
    (h) => [h.added?.(at('u', 10)), h.updated?.(at('u', 9), at('u', 10))],
    /went back from 10 to 9/,
  ],
])('%s', (_name, deletion, tell, violation) => {
  const judge = judgeOrder('the view', deletion);
  tell(judge.handler);
  if (violation) expect(judge.violations).toContainEqual(expect.stringMatching(violation));
  else expect(judge.violations).toEqual([]);
});
