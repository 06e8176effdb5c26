/**
 * Tests that each node's Lease is marked once, that it is marked again after the node joined again, and that a failed
 * mark is repeated until it succeeds.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { ChangingNode } from '../../../test/support/doubles/agent/changing-node.ts';
import { StatusError } from '../../kube/status-error.ts';
import type { SignalObject } from '../object/signal-object.ts';
import { keepDelegated } from './lease-delegation.ts';

class Cell extends ChangingNode {
  set(uid: string | undefined): void {
    this.show(uid === undefined ? undefined : { metadata: { name: 'n', uid } });
  }
}

let clock: FakeClock;
let cell: Cell;
let stop: AbortController;
let stamps: (string | undefined)[];
let failures: number;
let failure: Error;
let lines: string[];
let done: Promise<void>;
beforeEach(() => {
  clock = new FakeClock();
  cell = new Cell();
  stop = new AbortController();
  stamps = [];
  failures = 0;
  failure = new Error('no answer');
  lines = [];
  const offer = async (): Promise<void> => {
    stamps.push(cell.newest?.metadata.uid);
    if (failures-- > 0) await Promise.reject(failure);
  };
  const node = cell as unknown as SignalObject;
  const log = buildLog(lines, 'warn');
  done = keepDelegated({ node, delegation: { offer }, clock, random: () => 0.5, log }, stop.signal);
});
afterEach(async () => {
  stop.abort();
  await done;
  expect(clock.pending).toBe(0);
});

test('a node is marked once it is there, and no more when it changes', async () => {
  await clock.advance(60_000);
  expect(stamps).toEqual([]);
  for (const uid of ['a', 'a']) {
    cell.set(uid);
    await clock.advance(60_000);
  }
  expect(stamps).toEqual(['a']);
});

test('a node that joins again is marked again', async () => {
  for (const uid of ['a', undefined, 'b']) {
    cell.set(uid);
    await clock.advance(0);
  }
  expect(stamps).toEqual(['a', 'b']);
});

test('the agent tries to label the Lease of its node with growing pauses until it succeeds', async () => {
  failures = 12;
  cell.set('a');
  await clock.advance(10_000);
  const soon = stamps.length;
  expect(soon).toBeGreaterThan(4);
  await clock.advance(600_000);
  expect(stamps).toHaveLength(13);
  expect(lines).toHaveLength(12);
});

test('a refused label of the Lease is reported at once, once for each reason, and tried again all the same', async () => {
  failures = 12;
  failure = new StatusError({ kind: 'Status', code: 403, message: 'may not' });
  cell.set('a');
  await clock.advance(10_000);
  failure = new StatusError({ kind: 'Status', code: 422, message: 'policy' });
  await clock.advance(600_000);
  expect(stamps).toHaveLength(13);
  const said = lines.map((line) => JSON.parse(line) as { level: string; reason: string });
  expect(said.map(({ level, reason }) => [level, reason])).toEqual([
    ['error', 'may not'],
    ['error', 'policy'],
  ]);
});
