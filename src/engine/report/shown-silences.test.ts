/**
 * Tests that a NodeRollout shows the silences of nodes in progress, and that a renewal of a silence does not change
 * what the NodeRollout shows.
 */
import { expect, test } from 'vitest';
import type { NodeSilence } from '../../silences/keeper.ts';
import { silencesShown } from './shown-silences.ts';

const GOOD: NodeSilence = {
  node: 'w1',
  silence: 'nodes',
  server: 'am:9093',
  lastsMs: 300_000,
  made: { id: 's1', startsAt: '2026-01-01T00:00:00.400Z' },
  problem: '',
};
const BAD: NodeSilence = { ...GOOD, node: 'w2', made: undefined, problem: 'no answer from am' };
const SHOWN = {
  node: 'w1',
  silence: 'nodes',
  server: 'am:9093',
  id: 's1',
  since: '2026-01-01T00:00:00Z',
  durationSeconds: 300,
};

test('silences that failed come first, and the others have an id', () => {
  expect(silencesShown([GOOD, BAD])).toEqual([
    { node: 'w2', silence: 'nodes', server: 'am:9093', durationSeconds: 300, problem: BAD.problem },
    SHOWN,
  ]);
  expect(silencesShown([])).toBeUndefined();
  expect(silencesShown()).toBeUndefined();
});

test('a new leader that has not looked yet shows what the last one has shown, but of nodes in progress only', () => {
  const untried = { ...GOOD, made: undefined, problem: undefined };
  expect(silencesShown([untried], [SHOWN, { ...SHOWN, node: 'w9' }])).toEqual([SHOWN]);
  expect(silencesShown([untried])).toBeUndefined();
});

test('the start stays while the id stays, and another id has another start', () => {
  const startsAt = '2026-01-01T00:00:01Z';
  const again = (id: string) => silencesShown([{ ...GOOD, made: { id, startsAt } }], [SHOWN]);
  expect(again('s1')).toEqual([SHOWN]);
  expect(again('s2')).toEqual([{ ...SHOWN, id: 's2', since: startsAt }]);
});

test('the list and its texts are bounded, and texts of servers are printable', () => {
  const many = Array.from({ length: 200 }, (_, index) => ({ ...GOOD, node: `w${index}` }));
  const long = {
    ...BAD,
    made: { id: 'i'.repeat(999), startsAt: 'never' },
    problem: '\u001b[31m'.repeat(999),
  };
  const shown = silencesShown([...many, long]) ?? [];
  expect(shown).toHaveLength(100);
  expect(shown[0]?.id).toHaveLength(253);
  expect(shown[0]?.since).toBeUndefined();
  expect(shown[0]?.problem).toHaveLength(1024);
  expect(shown[0]?.problem).not.toContain('\u001b');
});
