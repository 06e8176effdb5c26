/**
 * Tests when a new version counts as running: which process answers, from which file it runs, for how long, and on
 * which node.
 */
import { describe, expect, test } from 'vitest';
import {
  after,
  before,
  forced,
  hanging,
  journalAt,
  NEW,
  NOW,
  OLD,
  running,
  signalAt,
  silent,
  situation,
  TIMES,
  third,
  workFor,
} from '../../../test/support/builders/agent-situations.ts';
import { nextStep } from '../next-step.ts';
import type { StepInput } from '../step-input.ts';
import type { Step } from '../steps/step.ts';
import type { ServiceFacts } from './host.ts';

const oldLeft = running(OLD, before, false);
const newRuns = running(NEW, after);
const SOAK = { kind: 'soak', process: after };
const UNCORDON = { kind: 'report', status: 'UnCordoning' };
const says = (text: string): unknown => expect.stringContaining(text);
const back = (text: string): object => ({ kind: 'roll-back', reason: says(text) });
const wait = (until: number): object => ({ kind: 'await-service', until });
const at = (more: Partial<StepInput>): Step =>
  nextStep(situation({ signal: signalAt('Restart'), ...more }));

describe('after the restart', () => {
  const inTime = journalAt('restarted', { process: before, since: NOW - 1_000 });
  const tooLate = journalAt('restarted', { process: before, since: NOW - TIMES.restartTimeoutMs });
  const until = NOW - 1_000 + TIMES.restartTimeoutMs;
  test.each<[string, Partial<StepInput>, object]>([
    ['the old process is still ending', { journal: inTime, host: oldLeft }, wait(until)],
    ['the supervisor waits', { journal: inTime, host: silent }, wait(until)],
    ['the new process starts', { journal: inTime, host: hanging(after) }, wait(until)],
    ['the new process runs', { journal: inTime, host: newRuns }, SOAK],
    [
      'the new process is there, although the deadline has passed',
      { journal: tooLate, host: newRuns },
      SOAK,
    ],
    [
      'the agent rolls back if another version than planned runs after the restart',
      { journal: inTime, host: running('v9', after) },
      back('v9'),
    ],
    [
      'another version from another file',
      { journal: inTime, host: running('v9', after, false) },
      wait(until),
    ],
    ['no process is there at the deadline', { journal: tooLate, host: silent }, back('1 min 30 s')],
    [
      'the new process hangs at the deadline',
      { journal: tooLate, host: hanging(after) },
      back(NEW),
    ],
    [
      'the old process has not ended at the deadline',
      { journal: tooLate, host: oldLeft },
      back(NEW),
    ],
  ])('the next step: %s', (_name, more, step) => expect(at(more)).toEqual(step));

  test('after a forced update, only a process that runs the new file counts', () => {
    const journal = { ...inTime, work: workFor(forced) };
    const signal = signalAt('Restart', forced);
    expect(at({ signal, journal, host: newRuns })).toEqual(SOAK);
    expect(at({ signal, journal, host: running(NEW, after, false) })).toEqual(wait(until));
  });

  test('a forced update may bring another version than the plan names, as v0.0.0 does for the original', () => {
    const zero = { ...forced, command: { ...forced.command, version: 'v0.0.0' } };
    const signal = signalAt('Restart', zero);
    const journal = { ...inTime, work: workFor(zero) };
    expect(at({ signal, journal, host: running(OLD, after) })).toEqual(SOAK);
    expect(at({ signal, journal, host: running(OLD, after, false) })).toEqual(wait(until));
    const soaking = {
      ...journalAt('soaking', { fresh: after, since: NOW - 5_000 }),
      work: workFor(zero),
    };
    expect(at({ signal, journal: soaking, host: running(OLD, after) })).toEqual(UNCORDON);
  });

  test('after a forced update to the running version, only a new process counts', () => {
    const signal = signalAt('Restart', { ...forced, command: { ...forced.command, version: OLD } });
    const journal = { ...inTime, work: workFor(signal) };
    expect(at({ signal, journal, host: running(OLD, before) })).toEqual(wait(until));
    expect(at({ signal, journal, host: running(OLD, after) })).toEqual(SOAK);
  });
});

describe('the soak', () => {
  const soaking = (ms: number): StepInput['journal'] =>
    journalAt('soaking', { process: before, fresh: after, since: NOW - ms });
  const rows: [string, number, ServiceFacts, StepInput['node'], object][] = [
    ['goes on', 1_000, newRuns, {}, wait(NOW + 4_000)],
    ['is over', 5_000, newRuns, {}, UNCORDON],
    ['is over, node Ready', 5_000, newRuns, { isReady: true }, UNCORDON],
    ['goes on though the node is Ready', 1_000, newRuns, { isReady: true }, wait(NOW + 4_000)],
    [
      'goes on while the node is not Ready',
      1_000,
      newRuns,
      { isReady: false },
      wait(NOW + 119_000),
    ],
    ['is over, node not Ready', 5_000, newRuns, { isReady: false }, wait(NOW + 115_000)],
    [
      'is over, node never Ready',
      120_000,
      newRuns,
      { isReady: false },
      back('node not Ready within 2 min'),
    ],
    [
      'goes on while the kubelet is not heard',
      1_000,
      newRuns,
      { staleMs: 1_000 },
      wait(NOW + 119_000),
    ],
    ['is over, kubelet not heard', 5_000, newRuns, { staleMs: 5_000 }, wait(NOW + 115_000)],
    [
      'is over, kubelet never heard',
      120_000,
      newRuns,
      { staleMs: 120_000 },
      back('no kubelet heartbeat within'),
    ],
    ['is long over, nobody could be asked', 120_000, newRuns, { staleMs: 0 }, wait(NOW + 120_000)],
    [
      'goes on though the kubelet was given up',
      1_000,
      newRuns,
      { staleMs: 120_000 },
      wait(NOW + 4_000),
    ],
    [
      'process replaced',
      2_000,
      { ...running(NEW, third), exits: 1 },
      {},
      back(`crash loop: the process of ${NEW} (PID 200) ended 2 s after its first answer`),
    ],
    ['process gone', 2_000, { ...silent, exits: 1 }, {}, back('crash loop')],
    ['another process, silent', 2_000, { ...hanging(third), exits: 1 }, {}, back('crash loop')],
    [
      'another version from the same process',
      2_000,
      running('v9', after),
      {},
      back('reports version v9'),
    ],
    [
      'silent once, long after its first answer',
      60_000,
      { ...hanging(after), unansweredMs: 0 },
      {},
      wait(NOW + 60_000),
    ],
    [
      'silent for a while',
      2_000,
      { ...hanging(after), unansweredMs: 2_000 },
      {},
      wait(NOW + 58_000),
    ],
    [
      'silent to the end',
      60_000,
      { ...hanging(after), unansweredMs: 60_000 },
      {},
      back('stopped answering'),
    ],
  ];
  test.each(rows)('%s', (_name, ms, host, node, step) =>
    expect(at({ journal: soaking(ms), host, node })).toEqual(step),
  );

  test('of a forced update ends badly where another file is at the path', () => {
    const journal = {
      ...journalAt('soaking', { fresh: after, since: NOW }),
      work: workFor(forced),
    };
    const signal = signalAt('Restart', forced);
    expect(at({ signal, journal, host: running(NEW, after, false) })).toEqual(back('another file'));
  });

  test('of no time at all is over at once, unless the node is not Ready', () => {
    const times = { ...TIMES, soakMs: 0 };
    const node = (facts: StepInput['node']): Step =>
      at({ times, journal: soaking(0), host: newRuns, node: facts });
    expect(node({})).toEqual(UNCORDON);
    expect(node({ isReady: true })).toEqual(UNCORDON);
    expect(node({ isReady: false })).toEqual(wait(NOW + 120_000));
    expect(node({ staleMs: 0 })).toEqual(wait(NOW + 120_000));
  });
});
