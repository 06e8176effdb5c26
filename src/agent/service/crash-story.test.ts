/** Tests the text that people read about a service that did not keep running. */
import { expect, test } from 'vitest';
import { crashesSoFar, type SupervisorAccount, withCrashStory } from './crash-story.ts';

const REASON = 'the service did not show v2 within 1 min 30 s of its restart';
const story = (exits: number, account?: SupervisorAccount, reason = REASON): string =>
  withCrashStory(reason, exits, account ?? {}, 90_400);

test.each<[string, string, string]>([
  ['a process that hangs has no story', story(0), REASON],
  ['one more start is told', story(1), `${REASON}; started at least 2 times in 1 min 30 s`],
  [
    'three starts are a loop',
    story(2),
    `crash loop: ${REASON}; started at least 3 times in 1 min 30 s`,
  ],
  [
    'the supervisor counts all starts',
    story(2, { restarts: 6, end: 'exit code 1', log: ['', 'no etcd', 'panic: \u001b[2Jbad', ' '] }),
    `crash loop: ${REASON}; started 7 times in 1 min 30 s, exit code 1, last lines of its log: no etcd | panic: \uFFFD[2Jbad`,
  ],
  [
    'a supervisor that waits long has started it once',
    story(0, { restarts: 0, end: 'signal 9' }),
    `${REASON}; signal 9`,
  ],
  [
    'a loop is called a loop only once',
    story(2, undefined, 'crash loop: it ended'),
    'crash loop: it ended; started at least 3 times in 1 min 30 s',
  ],
])('the reason of a failed restart: %s', (_name, text, expected) => expect(text).toBe(expected));

test.each<[string, number, SupervisorAccount, string | undefined]>([
  ['nothing before a process ended', 0, { end: 'exit code 0' }, undefined],
  ['one end, without its code', 1, {}, 'the process of v2 ended at least once in 5 s'],
  [
    'one end that the supervisor knows',
    1,
    { restarts: 1, end: 'exit code 1' },
    'the process of v2 ended once in 5 s, last with exit code 1',
  ],
  [
    'several ends are a loop',
    1,
    { restarts: 6, end: 'signal 9' },
    'crash loop: the process of v2 ended 6 times in 5 s, last with signal 9',
  ],
])('the report about a crash while it happens: %s', (_name, exits, account, expected) =>
  expect(crashesSoFar('v2', exits, account, 5_000)).toBe(expected),
);

test('the log in a reason is bounded to three short lines', () => {
  const text = story(0, {
    log: Array.from({ length: 10 }, (_, index) => `${index}${'x'.repeat(500)}`),
  });
  expect(text.match(/\dx{118}…/g)).toEqual(
    ['7', '8', '9'].map((digit) => `${digit}${'x'.repeat(118)}…`),
  );
  expect(text.length).toBeLessThan(500);
});

test('a log line of a megabyte takes no longer than a short one', () => {
  expect(story(0, { log: ['a'.repeat(2 ** 20)] })).toContain(`: ${'a'.repeat(119)}…`);
});
