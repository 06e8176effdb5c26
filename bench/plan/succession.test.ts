/** Tests which completed node frees the slot for which next node, and how the time of a node is divided into steps. */
import { expect, test } from 'vitest';
import type { Sighting } from '../../test/support/expectations/signal-watch.ts';
import { stepTimes, successions } from './succession.ts';

const seen = (at: number, name: string, status = ''): Sighting => ({
  at,
  name,
  status,
  planId: 'p',
});
const done = (at: number, name: string): Sighting => seen(at, name, 'Completed');

test('one node leaves nothing to wait for', () => {
  expect(successions([seen(0, 'c1'), done(9, 'c1')], ['c1'], 2)).toEqual([]);
});

test('controllers follow each other, the first workers the last controller, later ones whoever is done', () => {
  const sightings = [
    seen(0, 'c1'),
    done(10, 'c1'),
    seen(11, 'c2'),
    done(20, 'c2'),
    seen(22, 'w1'),
    seen(23, 'w2'),
    done(30, 'w2'),
    seen(34, 'w3'),
    done(40, 'w1'),
    seen(45, 'w4'),
    done(50, 'w3'),
    done(51, 'w4'),
  ];
  expect(successions(sightings, ['c1', 'c2'], 2)).toEqual([1, 2, 3, 4, 5]);
});

test('two that are done before the next is signalled make room for two', () => {
  const sightings = [
    seen(0, 'c1'),
    done(1, 'c1'),
    seen(2, 'w1'),
    seen(2, 'w2'),
    done(10, 'w1'),
    done(11, 'w2'),
  ];
  expect(successions([...sightings, seen(14, 'w3'), seen(14, 'w4')], ['c1'], 2)).toEqual([
    1, 1, 4, 3,
  ]);
});

test('the time of each step is that to the next status of the same node', () => {
  const sightings = [
    seen(0, 'a'),
    seen(1, 'b'),
    seen(2, 'a', 'Restart'),
    seen(5, 'b', 'Restart'),
    done(9, 'a'),
  ];
  expect([...stepTimes(sightings)]).toEqual([
    ['signalled → Restart', [2, 4]],
    ['Restart → Completed', [7]],
  ]);
});
