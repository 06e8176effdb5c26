/** Owns the proof of the step table: every status against every situation, those after a crash included. */
import { describe, expect, test } from 'vitest';
import type { SignalData } from '../signal/codec.ts';
import type { HostFacts, ProcessId } from './host.ts';
import type { ActiveJournal, Journal, Phase } from './journal.ts';
import { IDLE } from './journal.ts';
import { isAtRest, nextStep } from './next-step.ts';
import type { Step } from './step.ts';
import type { Work } from './work.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const before: ProcessId = { pid: 100, started: 'boot/1', parent: 1 };
const after: ProcessId = { pid: 200, started: 'boot/2', parent: 1 };
const third: ProcessId = { pid: 300, started: 'boot/3', parent: 1 };
const command = { id: 0, kind: 'k0supdate', url: 'http://d/k0s', version: NEW, sha256: 'AB'.repeat(32) } as const;
const key = { planId: 'p', created: 'c', command };
const forced = { ...key, command: { ...command, forceupdate: true } };

const signal = (status?: string, of: SignalData = key): SignalData =>
  status === undefined ? of : { ...of, status: { status, timestamp: '2026-01-01T00:00:00Z' } };
const work = (of: Work['signal'] = key): Work => ({ signal: of, binary: '/bin/k0s', from: OLD, original: before });
const at = (phase: Phase, more: Partial<ActiveJournal> = {}): Journal => ({ phase, work: work(), spent: {}, ...more });

const binary = '/bin/k0s';
const oldRuns: HostFacts = { binary, running: { version: OLD, process: before, current: true }, service: before };
/** The old process goes on under the new file. */
const oldLeft: HostFacts = { binary, running: { version: OLD, process: before, current: false }, service: before };
const newRuns: HostFacts = { binary, running: { version: NEW, process: after, current: true }, service: after };
const oldAgain: HostFacts = { binary, running: { version: OLD, process: third, current: true }, service: third };
const silent: HostFacts = { binary };
const hangs: HostFacts = { binary, service: after };

const TIMEOUT = 90_000;
const NOW = 1_000_000;
const IN_TIME = { process: before, since: NOW - 1_000 };
const HALF_WAY = { process: after, since: NOW - TIMEOUT / 2 };
const TOO_LATE = { process: before, since: NOW - TIMEOUT };
const WHY = { failure: { status: 'Failed', reason: 'why' } } as const;

const report = (status: string, more: object = {}): object => ({ kind: 'report', status, ...more });
const failure = (reason: unknown, more: object = {}): object => report('Failed', { reason, ...more });
const begin = (of: Work['signal'] = key): object => ({ kind: 'begin', work: work(of) });
const says = (text: string): unknown => expect.stringContaining(text);

type Row = [situation: string, signal: SignalData | undefined, journal: Journal, host: HostFacts, step: object];

const check = (rows: Row[]): void => {
  test.each(rows)('%s', (_name, signal, journal, host, step) => {
    expect(nextStep({ signal, journal, host, now: NOW, restartTimeoutMs: TIMEOUT })).toEqual(step);
  });
};

describe('nothing in the journal', () => {
  const same = signal(undefined, { ...key, command: { ...command, version: OLD } });
  const sameForced = signal(undefined, { ...forced, command: { ...forced.command, version: OLD } });
  const badHash = (sha256: string): SignalData => signal(undefined, { ...key, command: { ...command, sha256 } });
  const airgap = signal(undefined, { ...key, command: { ...command, kind: 'airgapupdate' } });
  check([
    ['no signal', undefined, IDLE, oldRuns, { kind: 'nothing' }],
    ['a new signal', signal(), IDLE, oldRuns, begin()],
    ['a new signal, service down', signal(), IDLE, silent, { kind: 'await-service' }],
    ['a new signal for what runs', same, IDLE, oldRuns, report('Completed', { from: OLD })],
    ['a forced signal for what runs', sameForced, IDLE, oldRuns, begin({ ...sameForced })],
    [
      'no path of the binary',
      signal(),
      IDLE,
      { ...oldRuns, binary: undefined } as never,
      failure(says('--binary'), { from: OLD }),
    ],
    ['a short sha256', badHash('abc'), IDLE, oldRuns, report('FailedDownload', { reason: says('"abc"'), from: OLD })],
    ['a sha256 that is none', badHash('zz'.repeat(32)), IDLE, silent, report('FailedDownload', { reason: says('zz') })],
    ['an airgapupdate', airgap, IDLE, oldRuns, report('FailedDownload', { reason: says('airgapupdate'), from: OLD })],
    ['Downloading, journal lost', signal('Downloading'), IDLE, oldRuns, begin()],
    ['Cordoning, journal lost', signal('Cordoning'), IDLE, oldRuns, begin()],
    ['Cordoning, journal lost, new one runs', signal('Cordoning'), IDLE, newRuns, report('UnCordoning', { from: NEW })],
    ['ApplyingUpdate, journal lost', signal('ApplyingUpdate'), IDLE, oldRuns, failure(says('ApplyingUpdate'))],
    ['ApplyingUpdate, journal lost, service down', signal('ApplyingUpdate'), IDLE, silent, { kind: 'await-service' }],
    ['Restart, journal lost', signal('Restart'), IDLE, oldLeft, failure(says('journal'))],
    ['Restart, journal lost, new one runs', signal('Restart'), IDLE, newRuns, report('UnCordoning')],
    ['Restart, journal lost, forced', signal('Restart', forced), IDLE, newRuns, failure(says('journal'))],
    ['UnCordoning, journal lost', signal('UnCordoning'), IDLE, newRuns, report('Completed')],
    ['Completed', signal('Completed'), IDLE, newRuns, { kind: 'nothing' }],
    ['Failed', signal('Failed'), IDLE, oldRuns, { kind: 'nothing' }],
    ['FailedDownload', signal('FailedDownload'), IDLE, oldRuns, { kind: 'nothing' }],
    ['a status that nobody knows', signal('Dancing'), IDLE, oldRuns, { kind: 'nothing' }],
  ]);
});

describe('up to the swap', () => {
  check([
    ['journalled, not reported', signal(), at('started'), oldRuns, report('Downloading')],
    ['reported', signal('Downloading'), at('started'), oldRuns, { kind: 'download' }],
    ['a leader moved on before the download', signal('ApplyingUpdate'), at('started'), oldRuns, { kind: 'download' }],
    ['downloaded', signal('Downloading'), at('downloaded'), oldRuns, { kind: 'try-out' }],
    ['tried out', signal('Downloading'), at('ready'), oldRuns, report('Cordoning')],
    ['tried out, status taken away', signal(), at('ready'), oldRuns, report('Cordoning')],
    ['Cordoning', signal('Cordoning'), at('ready'), oldRuns, report('ApplyingUpdate')],
    ['ApplyingUpdate', signal('ApplyingUpdate'), at('ready'), oldRuns, { kind: 'keep-previous' }],
    ['ApplyingUpdate, service down', signal('ApplyingUpdate'), at('ready'), silent, { kind: 'await-service' }],
    ['ApplyingUpdate, another file runs', signal('ApplyingUpdate'), at('ready'), oldLeft, failure(says('no way back'))],
    ['previous kept', signal('ApplyingUpdate'), at('kept'), oldRuns, { kind: 'swap' }],
    ['crashed within the swap, before', signal('ApplyingUpdate'), at('swapping'), oldRuns, { kind: 'swap' }],
    ['crashed within the swap, behind', signal('ApplyingUpdate'), at('swapping'), oldLeft, { kind: 'swap' }],
    ['swapped', signal('ApplyingUpdate'), at('swapped'), oldLeft, report('Restart')],
    ['a download that failed', signal('Downloading'), at('failed', WHY), oldRuns, failure('why')],
  ]);
});

describe('the restart', () => {
  const wrong: HostFacts = { ...newRuns, running: { version: 'v9', process: after, current: true } };
  const strange: HostFacts = { ...newRuns, running: { version: 'v9', process: after, current: false } };
  const until = NOW - 1_000 + TIMEOUT;
  const restart = { kind: 'restart', process: before };
  const inForce = { work: work(forced) };
  const otherFile: HostFacts = { ...newRuns, running: { version: NEW, process: after, current: false } };
  check([
    ['Restart reported', signal('Restart'), at('swapped'), oldLeft, restart],
    ['service silent, process alive', signal('Restart'), at('swapped'), { binary, service: before }, restart],
    ['no service to end', signal('Restart'), at('swapped'), silent, { kind: 'restart' }],
    ['host rebooted into the new one', signal('Restart'), at('swapped'), newRuns, report('UnCordoning')],
    ['crashed before SIGTERM', signal('Restart'), at('restarting', IN_TIME), oldLeft, restart],
    ['crashed after SIGTERM', signal('Restart'), at('restarting', IN_TIME), silent, { kind: 'await-service', until }],
    ['crashed, new one runs', signal('Restart'), at('restarting', IN_TIME), newRuns, report('UnCordoning')],
    ['old one still ending', signal('Restart'), at('restarted', IN_TIME), oldLeft, { kind: 'await-service', until }],
    ['supervisor waits', signal('Restart'), at('restarted', IN_TIME), silent, { kind: 'await-service', until }],
    ['new one starts', signal('Restart'), at('restarted', IN_TIME), hangs, { kind: 'await-service', until }],
    ['new one runs', signal('Restart'), at('restarted', IN_TIME), newRuns, report('UnCordoning')],
    ['too late, but there', signal('Restart'), at('restarted', TOO_LATE), newRuns, report('UnCordoning')],
    [
      'forced, new one runs',
      signal('Restart', forced),
      at('restarted', { ...IN_TIME, ...inForce }),
      newRuns,
      report('UnCordoning'),
    ],
    [
      'forced, another file runs',
      signal('Restart', forced),
      at('restarted', { ...IN_TIME, ...inForce }),
      otherFile,
      { kind: 'await-service', until },
    ],
    [
      'another version runs',
      signal('Restart'),
      at('restarted', IN_TIME),
      wrong,
      { kind: 'roll-back', reason: says('v9') },
    ],
    [
      'another version from another file',
      signal('Restart'),
      at('restarted', IN_TIME),
      strange,
      { kind: 'await-service', until },
    ],
    ['too late', signal('Restart'), at('restarted', TOO_LATE), silent, { kind: 'roll-back', reason: says('90 s') }],
    [
      'too late, it hangs',
      signal('Restart'),
      at('restarted', TOO_LATE),
      hangs,
      { kind: 'roll-back', reason: says(NEW) },
    ],
    [
      'too late, old one never ended',
      signal('Restart'),
      at('restarted', TOO_LATE),
      oldLeft,
      { kind: 'roll-back', reason: says(NEW) },
    ],
    ['UnCordoning not written', signal('Restart'), at('proven'), newRuns, report('UnCordoning')],
    ['UnCordoning written', signal('UnCordoning'), at('proven'), newRuns, report('Completed')],
    ['Completed', signal('Completed'), at('proven'), newRuns, { kind: 'clean-up' }],
  ]);
});

describe('the way back', () => {
  const rolledBack = failure('why', { rolledBack: true });
  const kill = { kind: 'kill', process: after };
  const restart = { kind: 'restart', process: after };
  const back = { ...HALF_WAY, ...WHY, since: NOW };
  const late = { ...back, since: NOW - TIMEOUT };
  const patience = NOW + TIMEOUT / 2;
  check([
    [
      'crashed within the way back',
      signal('Restart'),
      at('restoring', WHY),
      hangs,
      { kind: 'roll-back', reason: 'why' },
    ],
    ['swap failed, nothing was restarted', signal('ApplyingUpdate'), at('restored', WHY), oldRuns, rolledBack],
    [
      'old one was told to end, and has not',
      signal('Restart'),
      at('restored', { ...IN_TIME, ...WHY }),
      oldRuns,
      { kind: 'restart', process: before },
    ],
    ['new one hangs', signal('Restart'), at('restored', WHY), hangs, restart],
    ['nothing runs', signal('Restart'), at('restored', WHY), silent, { kind: 'restart' }],
    ['crashed before SIGTERM', signal('Restart'), at('reviving', back), hangs, restart],
    [
      'crashed after SIGTERM',
      signal('Restart'),
      at('reviving', back),
      silent,
      { kind: 'await-service', until: patience },
    ],
    ['waiting', signal('Restart'), at('revived', back), silent, { kind: 'await-service', until: patience }],
    ['old one runs', signal('Restart'), at('revived', back), oldAgain, rolledBack],
    ['SIGTERM did not help', signal('Restart'), at('revived', { ...HALF_WAY, ...WHY }), hangs, kill],
    [
      'waiting on',
      signal('Restart'),
      at('revived', { ...HALF_WAY, ...WHY }),
      silent,
      { kind: 'await-service', until: patience },
    ],
    ['too late', signal('Restart'), at('revived', late), silent, failure('why')],
    ['no way back', signal('Restart'), at('failed', WHY), silent, failure('why')],
    ['reported', signal('Failed'), at('revived', back), oldAgain, { kind: 'clean-up' }],
    ['reported as hopeless', signal('Failed'), at('revived', late), silent, { kind: 'clean-up' }],
  ]);
});

describe('the signal is gone, over or another one', () => {
  const other = signal(undefined, { ...key, created: 'later' });
  const otherCommand = signal('Restart', { ...key, command: { ...command, version: 'v9' } });
  const until = NOW - 1_000 + TIMEOUT;
  const rollBack = { kind: 'roll-back', reason: says('taken back') };
  check([
    ...(['started', 'downloaded', 'ready', 'kept', 'proven', 'failed'] as const).map((phase): Row => {
      return [`${phase}: nothing to bring to an end`, other, at(phase), oldRuns, { kind: 'clean-up' }];
    }),
    ['object deleted', undefined, at('ready'), oldRuns, { kind: 'clean-up' }],
    ['same plan, other command', otherCommand, at('ready'), oldRuns, { kind: 'clean-up' }],
    ['somebody wrote Failed', signal('Failed'), at('started'), oldRuns, { kind: 'clean-up' }],
    ['swapping', other, at('swapping'), oldLeft, rollBack],
    ['swapped', undefined, at('swapped'), oldLeft, rollBack],
    ['put back, never restarted', other, at('restored', WHY), oldRuns, { kind: 'clean-up' }],
    ['restarting', other, at('restarting', IN_TIME), oldLeft, { kind: 'restart', process: before }],
    ['restarted', other, at('restarted', IN_TIME), silent, { kind: 'await-service', until }],
    ['restarted, proven', other, at('restarted', IN_TIME), newRuns, { kind: 'clean-up' }],
    ['restarted, too late', other, at('restarted', TOO_LATE), silent, { kind: 'roll-back', reason: says(NEW) }],
    ['going back', other, at('revived', { ...HALF_WAY, ...WHY }), hangs, { kind: 'kill', process: after }],
  ]);
});

test('host facts are asked for only where they can matter', () => {
  expect(isAtRest(undefined, IDLE)).toBe(true);
  expect(isAtRest(signal('Completed'), IDLE)).toBe(true);
  expect(isAtRest(signal(), IDLE)).toBe(false);
  expect(isAtRest(signal('Completed'), at('proven'))).toBe(false);
});

test('the step is the same for equal input, whatever the identity of the objects', () => {
  const input = {
    signal: signal('Restart'),
    journal: at('restarted', IN_TIME),
    host: oldLeft,
    now: NOW,
    restartTimeoutMs: TIMEOUT,
  };
  const copy = JSON.parse(JSON.stringify(input)) as typeof input;
  expect<Step>(nextStep(copy)).toEqual(nextStep(input));
});
