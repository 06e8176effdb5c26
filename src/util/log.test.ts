/** Tests log lines: each is one JSON object, and has at least the configured level. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { jsonLogger, type Logger, type LogLevel, silentLogger, sparingly } from './log.ts';

const NOW = Date.UTC(2026, 10, 20, 8, 0, 0, 7);

function lines(level: LogLevel, write: (log: Logger) => void): unknown[] {
  const written: string[] = [];
  write(
    jsonLogger(
      (line) => written.push(line),
      () => NOW,
      level,
    ),
  );
  return written.map((line) => {
    expect(line.endsWith('\n')).toBe(true);
    expect(line.trimEnd()).not.toContain('\n');
    return JSON.parse(line) as unknown;
  });
}

test('time, level and message come first, then the fields', () => {
  const [line] = lines('info', (log) => log.info('started', { node: 'w1', count: 2 }));
  expect(JSON.stringify(line)).toBe(
    '{"time":"2026-11-20T08:00:00.007Z","level":"info","msg":"started","node":"w1","count":2}',
  );
});

test.each<[LogLevel, LogLevel[]]>([
  ['debug', ['debug', 'info', 'warn', 'error']],
  ['info', ['info', 'warn', 'error']],
  ['warn', ['warn', 'error']],
  ['error', ['error']],
])('from level %s: %j', (level, written) => {
  const all: LogLevel[] = ['debug', 'info', 'warn', 'error'];
  const told = lines(level, (log) => {
    for (const each of all) log[each]('x');
  });
  expect(told.map((line) => (line as { level: unknown }).level)).toEqual(written);
});

test('a child adds its fields to every line, and a grandchild its own', () => {
  const told = lines('info', (log) => log.child({ a: 1 }).child({ b: 2 }).warn('x', { c: 3 }));
  expect(told).toEqual([expect.objectContaining({ a: 1, b: 2, c: 3, msg: 'x' })]);
});

test('an error is written with all its causes, wherever it stands', () => {
  const error = new Error('no answer', { cause: new AggregateError([new Error('ECONNREFUSED')]) });
  const [line] = lines('info', (log) =>
    log.error('x', { problem: error, deep: { list: [new Error('a', { cause: 'b' })] } }),
  );
  expect(line).toMatchObject({ problem: 'no answer: ECONNREFUSED', deep: { list: ['a: b'] } });
});

test('a message of several lines stays one line', () => {
  expect(lines('info', (log) => log.info('a\nb'))).toEqual([
    expect.objectContaining({ msg: 'a\nb' }),
  ]);
});

test('the silent one takes everything and says nothing', () => {
  for (const level of ['debug', 'info', 'warn', 'error'] as const)
    expect(silentLogger[level]('x')).toBeUndefined();
  expect(silentLogger.child({ a: 1 })).toBe(silentLogger);
});

test('a text that repeats is told once a minute, and another one at once', async () => {
  const clock = new FakeClock();
  const isTold = sparingly(clock);
  expect([isTold('a'), isTold('a'), isTold('b'), isTold('a')]).toEqual([true, false, true, true]);
  await clock.advance(59_999);
  expect(isTold('a')).toBe(false);
  await clock.advance(1);
  expect([isTold('a'), isTold('a')]).toEqual([true, false]);
});
