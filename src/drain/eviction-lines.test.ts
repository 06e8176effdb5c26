/** Shows what the log and people read about pods whose eviction is refused, and when a queue ends. */
import { expect, test } from 'vitest';
import { buildLog } from '../../test/support/builders/logs.ts';
import { refuse, refuseByBudget } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { LogLevel } from '../util/log.ts';
import { type EvictionLines, evictionLines, uidOf } from './eviction-lines.ts';
import { refusalOf } from './eviction-refusal.ts';

const A = buildPod('a');
const B = buildPod('b');

interface Queues {
  readonly lines: EvictionLines;
  readonly clock: FakeClock;
  readonly log: string[];
}

function queues(level: LogLevel = 'debug'): Queues {
  const clock = new FakeClock();
  const log: string[] = [];
  const lines = evictionLines({ clock, random: () => 0.5, log: buildLog(log, level) });
  return { lines, clock, log };
}

function join({ lines }: Queues, pod: typeof A, error: Error) {
  return lines.join(pod, refusalOf(error, pod));
}

const wordsOf = ({ log }: Queues): unknown[] => log.map((line) => JSON.parse(line) as unknown);

test('the first refusal is logged with its reason and its pause, and later refusals only at the level debug', async () => {
  const all = queues();
  const problem =
    'PodDisruptionBudget default/web blocks default/a: it needs 2 healthy pods and has 2 currently';
  join(all, A, refuseByBudget('web'));
  await all.clock.advance(750);
  join(all, A, refuseByBudget('web'));
  await all.clock.advance(1_500);
  join(all, A, refuseByBudget('web'));
  expect(wordsOf(all)).toEqual([
    expect.objectContaining({ level: 'info', msg: 'eviction refused', problem, retryInMs: 750 }),
    expect.objectContaining({
      level: 'debug',
      msg: 'eviction still refused',
      problem,
      retryInMs: 1_500,
    }),
    expect.objectContaining({
      level: 'debug',
      msg: 'eviction still refused',
      problem,
      retryInMs: 3_000,
    }),
  ]);
});

test('refusals of evictions that ran at the same time count as one, and are logged once', () => {
  const all = queues();
  const line = join(all, A, refuseByBudget('web'));
  expect(join(all, B, refuseByBudget('web'))).toBe(line);
  expect(line.refusals).toBe(1);
  expect(line.pauseUntil).toBe(750);
  expect(all.log).toHaveLength(1);
});

test('people read the newest reason of a queue', async () => {
  const all = queues();
  join(all, A, refuseByBudget('web', 'needs 2 healthy pods'));
  await all.clock.advance(750);
  join(all, A, refuseByBudget('web', 'needs 3 healthy pods'));
  expect(all.lines.blockedBy()).toBe(
    'PodDisruptionBudget default/web blocks default/a: it needs 3 healthy pods',
  );
});

test('people read the same message as before if only words with digits have changed', async () => {
  const all = queues();
  const failure = (port: number): Error =>
    refuse({ code: 500, reason: 'InternalError', message: `port ${port} was closed` });
  join(all, A, failure(1));
  await all.clock.advance(750);
  join(all, A, failure(2));
  expect(all.lines.blockedBy()).toBe('the eviction of default/a is refused: port 1 was closed');
});

test('pods that are not kept leave their queues, and a queue without pods begins again with a short pause', async () => {
  const all = queues();
  join(all, A, refuseByBudget('web'));
  const line = join(all, B, refuseByBudget('web'));
  all.lines.keepOnly(new Set([uidOf(B)]));
  expect(all.lines.blockedBy()).toBe(
    'PodDisruptionBudget default/web blocks default/b: it needs 2 healthy pods and has 2 currently',
  );
  await all.clock.advance(1_000);
  expect(join(all, B, refuseByBudget('web'))).toBe(line);
  expect(line.refusals).toBe(2);
  all.lines.keepOnly(new Set());
  expect(all.lines.blockedBy()).toBeUndefined();
  expect(join(all, B, refuseByBudget('web')).refusals).toBe(1);
});

test('people read nothing about a queue whose last pod has gone', () => {
  const all = queues();
  const line = join(all, A, refuseByBudget('web'));
  line.pods.delete(uidOf(A));
  expect(all.lines.blockedBy()).toBeUndefined();
});

test('the reasons are told in alphabetical order', () => {
  const all = queues();
  join(all, A, refuseByBudget('web', 'needs one'));
  join(all, B, refuseByBudget('db', 'needs one'));
  expect(all.lines.blockedBy()).toBe(
    'PodDisruptionBudget default/db blocks default/b: it needs one; PodDisruptionBudget default/web blocks default/a: it needs one',
  );
});
