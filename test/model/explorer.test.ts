/** Tests the search on small graphs: shortest path, stuck states, cycles, and fairness. */
import { expect, test } from 'vitest';
import { EVERY_RUN_ENDS, explore, type Model, printViolation } from './explorer.ts';

/**
 * The edges of a graph: `a>b` is a fair edge, `a~b` an edge that a run may never take. `z` is final, and `!` must not
 * be reached.
 */
function graph(...edges: string[]): Model {
  return {
    initial: 'a',
    invariants: [{ name: 'no-bang', holds: (state) => state !== '!' }],
    isFinal: (state) => state === 'z',
    next: async (state) => {
      const own = edges.filter((edge) => edge.startsWith(state));
      return await Promise.resolve(
        own.map((edge) => ({ label: edge, fair: edge[1] === '>', to: edge[2] ?? '' })),
      );
    },
  };
}

test('every state is found once, however many paths lead there', async () => {
  expect(await explore(graph('a>b', 'a>c', 'b>d', 'c>d', 'd>z'))).toEqual({
    states: 5,
    transitions: 5,
    isWhole: true,
  });
});

test('a broken invariant is shown by the shortest path', async () => {
  const { violation } = await explore(graph('a>b', 'b>c', 'c>!', 'b>d', 'a>d', 'd>!', '!>z'));
  expect(violation).toEqual({ invariant: 'no-bang', steps: ['a>d', 'd>!'] });
  expect(violation && printViolation(violation)).toBe(
    'no-bang is broken after 2 steps:\n1. a>d\n2. d>!',
  );
});

test.each([
  ['nothing leads on', ['a>b', 'a>z'], ['a>b', 'nothing happens any more']],
  ['only a fault leads on', ['a>b', 'b~z'], ['a>b', 'nothing happens any more']],
  ['a way leads back', ['a>b', 'b>c', 'c>b', 'c>z'], ['a>b', 'and round in a circle']],
  ['a way leads back through a fault', ['a>b', 'b~a', 'b>z'], ['and round in a circle']],
])('not every run ends where %s', async (_, edges, steps) => {
  expect((await explore(graph(...edges))).violation).toEqual({ invariant: EVERY_RUN_ENDS, steps });
});

test('paths that meet again are no cycle', async () => {
  expect((await explore(graph('a>b', 'a>c', 'b>c', 'c>z', 'b>z'))).violation).toBeUndefined();
});
