/** Tests what an agent does with a signal that is new, lost or ended. */
import { describe, expect, test } from 'vitest';
import {
  after,
  airgap,
  before,
  forced,
  journalAt,
  key,
  NEW,
  NOW,
  OLD,
  running,
  signalAt,
  silent,
  situation,
  TIMES,
  WHY,
  workFor,
} from '../../test/support/builders/agent-situations.ts';
import type { SignalData } from '../signal/annotations.ts';
import { type Journal, type StagedJournal, type UpdateJournal, type Work } from './journal.ts';
import { nextStep } from './next-step.ts';
import type { StepInput } from './step-input.ts';
import type { Step } from './steps/step.ts';

/** The old process still runs, although its file has been replaced by the new file. */
const oldLeft = running(OLD, before, false);
const newRuns = running(NEW, after);

const report = (status: string, more: object = {}): object => ({ kind: 'report', status, ...more });
const failure = (reason: unknown, more: object = {}): object =>
  report('Failed', { reason, ...more });
const begin = (more: Partial<UpdateJournal> = {}): object => ({
  kind: 'begin',
  as: journalAt('started', more),
});
const says = (text: string): unknown => expect.stringContaining(text);
const CLEAN_UP = { kind: 'clean-up' };
const TAKE_BACK = { kind: 'uncordon' };

type Row = [situation: string, input: Partial<StepInput>, step: object];

const check = (rows: Row[]): void => {
  test.each(rows)('%s', (_name, more, step) => expect(nextStep(situation(more))).toEqual(step));
};

describe('a new signal', () => {
  const signalWith = (more: Partial<Work['signal']['command']>, of = key): SignalData => ({
    ...of,
    command: { ...of.command, ...more },
  });
  const same = signalWith({ version: OLD });
  const sameForced = { ...same, command: { ...same.command, forceupdate: true } };
  const policy = { soakMs: 1, cordoning: 'leader' } as const;
  const refused = (reason: string): object =>
    report('FailedDownload', { reason: says(reason), refused: true, from: OLD });
  check([
    ['none', { signal: undefined }, { kind: 'nothing' }],
    ['one', {}, begin()],
    ['one that the rules of this host refuse', { veto: 'no' }, refused('no')],
    [
      'one whose payload was fetched ahead',
      { isStaged: true },
      { kind: 'begin', as: journalAt('ready') },
    ],
    ['one from the future', { early: 'wait' }, { kind: 'await-clock', reason: 'wait' }],
    ['one with a policy', { policy }, begin({ work: workFor(key, { policy }) })],
    ['service down', { host: silent }, { kind: 'await-service' }],
    ['for what runs', { signal: same }, report('Completed', { from: OLD })],
    [
      'a new signal for the running version uncordons a node that Refit had cordoned',
      { signal: same, node: { isCordoned: true } },
      report('UnCordoning', { from: OLD }),
    ],
    ['for what runs, forced', { signal: sameForced }, begin({ work: workFor(sameForced) })],
    [
      'no path of the binary',
      { host: { running: { version: OLD, process: before, current: false } } },
      failure(says('--binary'), { from: OLD }),
    ],
    ['a short sha256', { signal: signalWith({ sha256: 'abc' }) }, refused('"abc"')],
    [
      'a short sha256, service down',
      { signal: signalWith({ sha256: 'abc' }), host: silent },
      report('FailedDownload', { reason: says('"abc"'), refused: true }),
    ],
    [
      'a sha256 that is none',
      { signal: signalWith({ sha256: 'zz'.repeat(32) }) },
      refused('"zzzz'),
    ],
    [
      'an airgapupdate',
      { signal: airgap },
      { kind: 'begin', as: { phase: 'wanted', work: { signal: airgap }, spent: {} } },
    ],
    [
      'an airgapupdate, service down',
      { signal: airgap, host: {} },
      { kind: 'begin', as: { phase: 'wanted', work: { signal: airgap }, spent: {} } },
    ],
    [
      'an airgapupdate with a short sha256',
      { signal: signalWith({ sha256: 'abc' }, airgap) },
      refused('"abc"'),
    ],
    [
      'an airgapupdate where none is carried out',
      { signal: airgap, accepts: ['k0supdate'] },
      refused('airgapupdate'),
    ],
    [
      'a k0supdate where none is carried out',
      { accepts: ['airgapupdate'] },
      refused('k0supdate here, only airgapupdate'),
    ],
    ['Completed', { signal: signalAt('Completed') }, { kind: 'nothing' }],
    ['Failed', { signal: signalAt('Failed') }, { kind: 'nothing' }],
    ['FailedDownload', { signal: signalAt('FailedDownload') }, { kind: 'nothing' }],
    ['a status that nobody knows', { signal: signalAt('Dancing') }, { kind: 'nothing' }],
    [
      'an airgapupdate in a status of a k0supdate',
      { signal: signalAt('Cordoning', airgap) },
      { kind: 'nothing' },
    ],
  ]);
});

describe('a signal that ended here before comes back', () => {
  const again = (ended: string, runs: string): unknown =>
    says(`this signal has already ended as ${ended}, and the host runs ${runs}.`);
  const uncordonFirst = (reason: unknown): object => ({
    kind: 'begin',
    as: { ...journalAt('failed', { drain: 'started' }), failure: { status: 'Failed', reason } },
  });
  const proven = {
    kind: 'begin',
    as: journalAt('proven', { work: workFor(key, { from: NEW, original: after }) }),
  };
  const hidden = { host: { ...silent, distrust: 'not root' } };
  check([
    ['left to another agent', { ended: 'left' }, { kind: 'nothing' }],
    ['service down', { ended: 'Completed', host: silent }, { kind: 'await-service' }],
    [
      'a bundle that was not',
      { ended: 'FailedDownload', signal: airgap, host: silent },
      report('Failed', {
        reason: says(
          'this signal has already ended as FailedDownload. The agent does not carry it out again',
        ),
      }),
    ],
    [
      'a bundle that was placed',
      { ended: 'Completed', signal: airgap, host: silent },
      report('Completed'),
    ],
    [
      'a service that is not trusted',
      { ended: 'Completed', ...hidden },
      report('Failed', {
        reason: says('this signal has already ended as Completed. The agent does not'),
      }),
    ],
    [
      'done, and still so',
      { ended: 'Completed', host: newRuns },
      report('UnCordoning', { from: NEW }),
    ],
    [
      'done, its cordon reported',
      { ended: 'Completed', signal: signalAt('UnCordoning'), host: newRuns },
      proven,
    ],
    [
      'done, and another version runs by now',
      { ended: 'Completed' },
      uncordonFirst(again('Completed', OLD)),
    ],
    [
      'done, and the file was replaced by now',
      { ended: 'Completed', host: running(NEW, after, false) },
      report('Failed', { reason: again('Completed', NEW), from: NEW }),
    ],
    ['failed', { ended: 'Failed' }, uncordonFirst(again('Failed', OLD))],
    [
      'failed, and its version runs',
      { ended: 'Failed', host: newRuns },
      expect.objectContaining({ kind: 'begin' }) as object,
    ],
  ]);
});

describe('a signal whose journal was lost', () => {
  const lost = (status: string): object => {
    const failure = { status: 'Failed', reason: says(status), rolledBack: false };
    return { kind: 'begin', as: { ...journalAt('failed', { drain: 'started' }), failure } };
  };
  const proven = {
    kind: 'begin',
    as: journalAt('proven', { work: workFor(key, { from: NEW, original: after }) }),
  };
  check([
    ['Downloading', { signal: signalAt('Downloading') }, begin()],
    [
      'Downloading, a bundle',
      { signal: signalAt('Downloading', airgap) },
      { kind: 'begin', as: { phase: 'wanted', work: { signal: airgap }, spent: {} } },
    ],
    ['Cordoning', { signal: signalAt('Cordoning') }, begin({ begunLate: true })],
    [
      'Cordoning, new one runs',
      { signal: signalAt('Cordoning'), host: newRuns },
      report('UnCordoning', { from: NEW }),
    ],
    ['ApplyingUpdate', { signal: signalAt('ApplyingUpdate') }, lost('ApplyingUpdate')],
    [
      'ApplyingUpdate, service down',
      { signal: signalAt('ApplyingUpdate'), host: silent },
      { kind: 'await-service' },
    ],
    ['Restart', { signal: signalAt('Restart'), host: oldLeft }, lost('Restart')],
    ['Restart, new one runs', { signal: signalAt('Restart'), host: newRuns }, proven],
    ['UnCordoning', { signal: signalAt('UnCordoning'), host: newRuns }, proven],
    [
      'Restart, service down',
      { signal: signalAt('Restart'), host: silent },
      { kind: 'await-service' },
    ],
    [
      'a signal in status UnCordoning fails if the journal is lost and the old version runs',
      { signal: signalAt('UnCordoning') },
      lost('UnCordoning'),
    ],
  ]);

  test('if the journal is lost, the running version proves a forced update only in status UnCordoning', () => {
    const at = (status: string): Step =>
      nextStep(situation({ signal: signalAt(status, forced), host: newRuns }));
    expect(at('Restart')).toMatchObject({ kind: 'begin', as: { phase: 'failed' } });
    expect(at('UnCordoning')).toMatchObject({ kind: 'begin', as: { phase: 'proven' } });
    const zero = { ...forced, command: { ...forced.command, version: 'v0.0.0' } };
    const proven = nextStep(situation({ signal: signalAt('UnCordoning', zero), host: newRuns }));
    expect(proven).toMatchObject({ kind: 'begin', as: { phase: 'proven' } });
  });
});

describe('an airgap bundle', () => {
  const at = (phase: StagedJournal['phase'], more: object = {}): Journal => ({
    phase,
    work: { signal: airgap },
    spent: {},
    ...more,
  });
  const missed = at('missed', { failure: { status: 'FailedDownload', reason: 'why' } });
  const downloading = signalAt('Downloading', airgap);
  check([
    ['journalled, not reported', { signal: airgap, journal: at('wanted') }, report('Downloading')],
    ['reported', { signal: downloading, journal: at('wanted') }, { kind: 'fetch-bundle' }],
    ['placed', { signal: downloading, journal: at('placed') }, report('Completed')],
    [
      'placed before Downloading was seen',
      { signal: airgap, journal: at('placed') },
      report('Completed'),
    ],
    [
      'missed, by a journal that does not say why',
      { signal: downloading, journal: at('missed') },
      report('FailedDownload', { reason: 'the files were not staged' }),
    ],
    [
      'missed',
      { signal: downloading, journal: missed },
      report('FailedDownload', { reason: 'why' }),
    ],
    ['completed', { signal: signalAt('Completed', airgap), journal: at('placed') }, CLEAN_UP],
    ['cancelled', { signal: signalAt('Failed', airgap), journal: at('wanted') }, CLEAN_UP],
    ['replaced', { signal: key, journal: at('wanted') }, CLEAN_UP],
  ]);
});

describe('the upgrade of a host by a procedure', () => {
  const signal = {
    ...airgap,
    command: { ...airgap.command, kind: 'kubeadmupdate' },
  } as const;
  const at = (phase: StagedJournal['phase']): Journal => ({ phase, work: { signal }, spent: {} });
  const step = (status: string | undefined, phase: StagedJournal['phase']): Step => {
    const seen = status === undefined ? signal : signalAt(status, signal);
    return nextStep(situation({ signal: seen, journal: at(phase) }));
  };

  test('the agent stages the upgrade first, and asks for the drain only when everything is staged', () => {
    expect(step(undefined, 'wanted')).toEqual(report('Downloading'));
    expect(step('Downloading', 'wanted')).toEqual({ kind: 'stage-upgrade' });
    expect(step('Downloading', 'placed')).toEqual(report('Cordoning'));
    expect(step(undefined, 'placed')).toEqual(report('Cordoning'));
  });

  test('the agent changes the host only after the drain, and waits for the leader before and after', () => {
    expect(step('Cordoning', 'placed')).toEqual({ kind: 'await-leader' });
    expect(step('ApplyingUpdate', 'placed')).toEqual({ kind: 'upgrade-host' });
    expect(step('ApplyingUpdate', 'upgraded')).toEqual(report('UnCordoning'));
    expect(step('UnCordoning', 'upgraded')).toEqual({ kind: 'await-leader' });
  });
});

describe('rules of the host that changed while an update is under way', () => {
  const veto = 'only https is allowed';
  const giveUp = { kind: 'give-up', reason: veto, refused: true };
  const downloading = signalAt('Downloading');
  const applying = signalAt('ApplyingUpdate');
  check([
    ['before the download', { veto, signal: downloading, journal: journalAt('started') }, giveUp],
    [
      'in the swap: the new file may be there',
      { veto, signal: applying, journal: journalAt('swapping') },
      { kind: 'swap' },
    ],
    ['before the swap', { veto, signal: applying, journal: journalAt('kept') }, giveUp],
    [
      'between them',
      { veto, signal: downloading, journal: journalAt('downloaded') },
      { kind: 'trial-run' },
    ],
    [
      'after the swap',
      { veto, signal: applying, journal: journalAt('swapped') },
      report('Restart'),
    ],
  ]);
});

describe('the signal is gone, over or another one', () => {
  const other = signalAt(undefined, { ...key, created: 'later' });
  const otherCommand = signalAt('Restart', { ...key, command: { ...key.command, version: 'v9' } });
  const since = { process: before, since: NOW - 1_000 };
  const until = NOW - 1_000 + TIMES.restartTimeoutMs;
  const rollBack = { kind: 'roll-back', reason: says('cancelled') };
  const late = { process: before, since: NOW - TIMES.restartTimeoutMs };
  check([
    ...(['started', 'downloaded', 'ready', 'kept', 'proven', 'failed'] as const).flatMap(
      (phase): Row[] => [
        [
          `${phase}: nothing to bring to an end`,
          { signal: other, journal: journalAt(phase) },
          CLEAN_UP,
        ],
        [
          `${phase}: our cordon`,
          { signal: other, journal: journalAt(phase, { drain: 'done' }) },
          TAKE_BACK,
        ],
        [
          `${phase}: no cordon any more`,
          { signal: other, journal: journalAt(phase, { drain: 'undone' }) },
          CLEAN_UP,
        ],
      ],
    ),
    ['object deleted', { signal: undefined, journal: journalAt('ready') }, CLEAN_UP],
    [
      'the agent cleans up its work when a signal of the same plan has another command',
      { signal: otherCommand, journal: journalAt('ready') },
      CLEAN_UP,
    ],
    [
      'somebody wrote Failed',
      { signal: signalAt('Failed'), journal: journalAt('started') },
      CLEAN_UP,
    ],
    [
      'somebody wrote Failed, service down',
      { signal: signalAt('Failed'), journal: journalAt('ready'), host: silent },
      CLEAN_UP,
    ],
    [
      'somebody wrote Failed while we drained',
      { signal: signalAt('Failed'), journal: journalAt('ready', { drain: 'started' }) },
      TAKE_BACK,
    ],
    [
      'we failed, and our cordon is stuck',
      { signal: signalAt('Failed'), journal: journalAt('failed', { ...WHY, drain: 'stuck' }) },
      TAKE_BACK,
    ],
    ['swapping', { signal: other, journal: journalAt('swapping'), host: oldLeft }, rollBack],
    ['swapped', { signal: undefined, journal: journalAt('swapped'), host: oldLeft }, rollBack],
    [
      'put back, never restarted',
      { signal: other, journal: journalAt('swappedBack', WHY) },
      CLEAN_UP,
    ],
    [
      'put back, never restarted, our cordon',
      { signal: other, journal: journalAt('swappedBack', { ...WHY, drain: 'done' }) },
      TAKE_BACK,
    ],
    [
      'restarting',
      { signal: other, journal: journalAt('restarting', since), host: oldLeft },
      { kind: 'restart', process: before },
    ],
    [
      'restarted',
      { signal: other, journal: journalAt('restarted', since), host: silent },
      { kind: 'await-service', until },
    ],
    [
      'restarted, seen',
      { signal: other, journal: journalAt('restarted', since), host: newRuns },
      { kind: 'soak', process: after },
    ],
    [
      'soaking',
      { signal: other, journal: journalAt('soaking', { since: NOW, fresh: after }), host: newRuns },
      { kind: 'await-service', until: NOW + TIMES.soakMs },
    ],
    [
      'soaked',
      {
        signal: other,
        journal: journalAt('soaking', { since: NOW - 5_000, fresh: after }),
        host: newRuns,
      },
      CLEAN_UP,
    ],
    [
      'restarted, too late',
      { signal: other, journal: journalAt('restarted', late), host: silent },
      { kind: 'roll-back', reason: says(NEW) },
    ],
    [
      'going back',
      {
        signal: other,
        journal: journalAt('restartedBack', { ...WHY, process: after, since: NOW - 45_000 }),
        host: { ...silent, service: after },
      },
      { kind: 'kill', process: after },
    ],
  ]);
});

test('the step is the same for equal input, whatever the identity of the objects', () => {
  const input = situation({
    signal: signalAt('Restart'),
    journal: journalAt('restarted', { since: NOW }),
    host: oldLeft,
  });
  expect(nextStep(structuredClone(input))).toEqual(nextStep(input));
});
