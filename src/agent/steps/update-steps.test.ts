/** The proof of an update's steps: every phase against every situation, those after a crash included. */
import { describe, expect, test } from 'vitest';
import {
  after,
  airgap,
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
  WHY,
  workFor,
} from '../../../test/support/builders/agent-situations.ts';
import { IDLE } from '../journal.ts';
import { nextStep } from '../next-step.ts';
import type { StepInput } from '../step-input.ts';

const oldLeft = running(OLD, before, false);
const oldAgain = running(OLD, third);
const newRuns = running(NEW, after);
const hangs = hanging(after);

const report = (status: string, more: object = {}): object => ({ kind: 'report', status, ...more });
const failure = (reason: unknown, more: object = {}): object =>
  report('Failed', { reason, ...more });
const LOST = failure('why', { rolledBack: false });
const says = (text: string): unknown => expect.stringContaining(text);

type Row = [situation: string, status: string | undefined, input: Partial<StepInput>, step: object];

const check = (rows: Row[]): void => {
  test.each(rows)('%s', (_name, status, more, step) =>
    expect(nextStep(situation({ signal: signalAt(status), ...more }))).toEqual(step),
  );
};

describe('up to the swap', () => {
  const { phase: _, ...failed } = journalAt('failed', WHY);
  check([
    [
      'journalled, not reported',
      undefined,
      { journal: journalAt('started') },
      report('Downloading'),
    ],
    ['reported', 'Downloading', { journal: journalAt('started') }, { kind: 'download' }],
    [
      'a leader moved on before the download',
      'ApplyingUpdate',
      { journal: journalAt('started') },
      { kind: 'download' },
    ],
    ['downloaded', 'Downloading', { journal: journalAt('downloaded') }, { kind: 'trial-run' }],
    ['tried out', 'Downloading', { journal: journalAt('ready') }, report('Cordoning')],
    [
      'tried out, status taken away',
      undefined,
      { journal: journalAt('ready') },
      report('Cordoning'),
    ],
    [
      'ApplyingUpdate',
      'ApplyingUpdate',
      { journal: journalAt('ready') },
      { kind: 'keep-previous' },
    ],
    [
      'ApplyingUpdate, service down',
      'ApplyingUpdate',
      { journal: journalAt('ready'), host: silent },
      { kind: 'await-service' },
    ],
    [
      'ApplyingUpdate, service no longer trusted',
      'ApplyingUpdate',
      {
        journal: journalAt('ready'),
        host: { ...silent, distrust: 'its file is not owned by root' },
      },
      { kind: 'give-up', reason: 'its file is not owned by root' },
    ],
    [
      'ApplyingUpdate, another file runs',
      'ApplyingUpdate',
      { journal: journalAt('ready'), host: oldLeft },
      { kind: 'give-up', reason: says('roll-back would be impossible') },
    ],
    [
      'ApplyingUpdate, the wanted version runs from a file that was put back since',
      'ApplyingUpdate',
      { journal: journalAt('ready'), host: running(NEW, after, false) },
      { kind: 'give-up', reason: says('roll-back would be impossible') },
    ],
    [
      'ApplyingUpdate, the wanted version runs',
      'ApplyingUpdate',
      { journal: journalAt('ready'), host: newRuns },
      { kind: 'clean-up' },
    ],
    [
      'ApplyingUpdate, forced to the version that runs',
      'ApplyingUpdate',
      {
        signal: signalAt('ApplyingUpdate', forced),
        journal: journalAt('ready', { work: workFor(forced) }),
        host: newRuns,
      },
      { kind: 'keep-previous' },
    ],
    [
      "ApplyingUpdate, the wanted version runs, put there by k0s's own agent",
      'ApplyingUpdate',
      { beside: 'observe', journal: journalAt('ready'), host: newRuns },
      { kind: 'stand-aside', reason: `${NEW} runs already: another agent put it in place` },
    ],
    ['previous kept', 'ApplyingUpdate', { journal: journalAt('kept') }, { kind: 'swap' }],
    [
      'crashed within the swap, before',
      'ApplyingUpdate',
      { journal: journalAt('swapping') },
      { kind: 'swap' },
    ],
    [
      'crashed within the swap, behind',
      'ApplyingUpdate',
      { journal: journalAt('swapping'), host: oldLeft },
      { kind: 'swap' },
    ],
    [
      'swapped',
      'ApplyingUpdate',
      { journal: journalAt('swapped'), host: oldLeft },
      report('Restart'),
    ],
    [
      'a download that failed',
      'Downloading',
      { journal: { ...failed, phase: 'failed' } },
      failure('why'),
    ],
    [
      'failed on a node that was emptied',
      'ApplyingUpdate',
      { journal: journalAt('failed', { ...WHY, drain: 'done' }) },
      { kind: 'uncordon' },
    ],
    [
      'failed while the node was being emptied',
      'Cordoning',
      { journal: journalAt('failed', { ...WHY, drain: 'started' }) },
      { kind: 'uncordon' },
    ],
    [
      'failed, and the journal does not say why',
      'Downloading',
      { journal: journalAt('failed') },
      failure('the update failed'),
    ],
    [
      'swapped, the signal has no status',
      undefined,
      { journal: journalAt('swapped') },
      report('Restart'),
    ],
    [
      'proven, the signal has no status',
      undefined,
      { journal: journalAt('proven') },
      report('UnCordoning'),
    ],
    [
      'failed, cordon removed',
      'ApplyingUpdate',
      { journal: journalAt('failed', { ...WHY, drain: 'undone' }) },
      failure('why'),
    ],
    [
      'failed, cordon stuck',
      'ApplyingUpdate',
      { journal: journalAt('failed', { ...WHY, drain: 'stuck' }) },
      failure('why'),
    ],
  ]);
});

describe('who cordons and drains', () => {
  const at = (way?: 'started' | 'done'): object => ({
    journal: journalAt('ready', way && { drain: way }),
  });
  const done = (way?: 'started' | 'done' | 'undone'): object => ({
    journal: journalAt('proven', way && { drain: way }),
    host: newRuns,
  });
  const by = (cordoner?: 'self' | 'leader' | 'unknown'): object => ({
    node: cordoner ? { cordoner } : {},
  });
  const awaitLeader = { kind: 'await-leader' };
  const make = { kind: 'cordon-and-drain' };
  const uncordon = { kind: 'uncordon' };
  check([
    ['the agent', 'Cordoning', { ...at(), ...by('self') }, make],
    ['the agent, cut short', 'Cordoning', { ...at('started'), ...by('self') }, make],
    ['the agent, done', 'Cordoning', { ...at('done'), ...by() }, report('ApplyingUpdate')],
    ['the leader', 'Cordoning', { ...at(), ...by('leader') }, awaitLeader],
    [
      'the leader, after an agent that was cut short',
      'Cordoning',
      { ...at('started'), ...by('leader') },
      awaitLeader,
    ],
    ['nobody knows', 'Cordoning', { ...at(), ...by('unknown') }, awaitLeader],
    ['nobody can be asked', 'Cordoning', { ...at(), ...by() }, awaitLeader],
    ['back: the agent', 'UnCordoning', { ...done('done'), ...by('self') }, uncordon],
    [
      'back: the agent, what another one cordoned',
      'UnCordoning',
      { ...done(), ...by('self') },
      uncordon,
    ],
    [
      'back: the agent, done',
      'UnCordoning',
      { ...done('undone'), ...by('self') },
      report('Completed'),
    ],
    ['back: the leader', 'UnCordoning', { ...done(), ...by('leader') }, awaitLeader],
    [
      'back: the leader, what the agent cordoned',
      'UnCordoning',
      { ...done('done'), ...by('leader') },
      uncordon,
    ],
    [
      'back: the leader, what the agent uncordoned',
      'UnCordoning',
      { ...done('undone'), ...by('leader') },
      awaitLeader,
    ],
    ['back: nobody knows', 'UnCordoning', { ...done(), ...by('unknown') }, awaitLeader],
    ['UnCordoning not written', 'Restart', done(), report('UnCordoning')],
    ['Completed, by whom ever', 'Completed', done(), { kind: 'clean-up' }],
  ]);
});

describe('the restart', () => {
  const restart = { kind: 'restart', process: before };
  const inTime = { process: before, since: NOW - 1_000 };
  const until = NOW - 1_000 + TIMES.restartTimeoutMs;
  const soak = { kind: 'soak', process: after };
  check([
    ['Restart reported', 'Restart', { journal: journalAt('swapped'), host: oldLeft }, restart],
    [
      'service silent, process alive',
      'Restart',
      { journal: journalAt('swapped'), host: hanging(before) },
      restart,
    ],
    [
      'no service to end',
      'Restart',
      { journal: journalAt('swapped'), host: silent },
      { kind: 'restart' },
    ],
    [
      'host rebooted into the new one',
      'Restart',
      { journal: journalAt('swapped'), host: newRuns },
      soak,
    ],
    [
      'crashed before the order',
      'Restart',
      { journal: journalAt('restarting', inTime), host: oldLeft },
      restart,
    ],
    [
      'crashed after the order',
      'Restart',
      { journal: journalAt('restarting', inTime), host: silent },
      { kind: 'await-service', until },
    ],
    [
      'crashed, new one runs',
      'Restart',
      { journal: journalAt('restarting', inTime), host: newRuns },
      soak,
    ],
  ]);
});

describe('the way back', () => {
  const rolledBack = failure('why', { rolledBack: true });
  const kill = { kind: 'kill', process: after };
  const back = { ...WHY, process: after, since: NOW };
  const halfWay = { ...back, since: NOW - 40_000 };
  const late = { ...back, since: NOW - 80_000 };
  const patience = NOW + 40_000;
  check([
    [
      'crashed within',
      'Restart',
      { journal: journalAt('swappingBack', WHY), host: hangs },
      { kind: 'roll-back', reason: 'why' },
    ],
    [
      'crashed within, and the journal does not say why',
      'Restart',
      { journal: journalAt('swappingBack'), host: hangs },
      { kind: 'roll-back', reason: 'the update failed' },
    ],
    [
      'swap failed, nothing was restarted',
      'ApplyingUpdate',
      { journal: journalAt('swappedBack', WHY) },
      rolledBack,
    ],
    [
      'nothing was restarted, our cordon',
      'ApplyingUpdate',
      { journal: journalAt('swappedBack', { ...WHY, drain: 'done' }) },
      { kind: 'uncordon' },
    ],
    [
      'old one was told to end, and has not',
      'Restart',
      { journal: journalAt('swappedBack', { process: before, since: NOW, ...WHY }) },
      { kind: 'restart', process: before },
    ],
    [
      'new one hangs',
      'Restart',
      { journal: journalAt('swappedBack', WHY), host: hangs },
      { kind: 'restart', process: after },
    ],
    [
      'nothing runs',
      'Restart',
      { journal: journalAt('swappedBack', WHY), host: silent },
      { kind: 'restart' },
    ],
    [
      'crashed before the order',
      'Restart',
      { journal: journalAt('restartingBack', back), host: hangs },
      { kind: 'restart', process: after },
    ],
    [
      'crashed after the order',
      'Restart',
      { journal: journalAt('restartingBack', back), host: silent },
      { kind: 'await-service', until: patience },
    ],
    [
      'waiting',
      'Restart',
      { journal: journalAt('restartedBack', back), host: silent },
      { kind: 'await-service', until: patience },
    ],
    [
      'old one runs',
      'Restart',
      { journal: journalAt('restartedBack', back), host: oldAgain },
      rolledBack,
    ],
    [
      'old one runs, our cordon',
      'Restart',
      { journal: journalAt('restartedBack', { ...back, drain: 'done' }), host: oldAgain },
      { kind: 'uncordon' },
    ],
    [
      'the order did not help',
      'Restart',
      { journal: journalAt('restartedBack', halfWay), host: hangs },
      kill,
    ],
    [
      'waiting on',
      'Restart',
      { journal: journalAt('restartedBack', halfWay), host: silent },
      { kind: 'await-service', until: patience },
    ],
    ['too late', 'Restart', { journal: journalAt('restartedBack', late), host: silent }, LOST],
    ['no way back', 'Restart', { journal: journalAt('failed', WHY), host: silent }, failure('why')],
    [
      'reported',
      'Failed',
      { journal: journalAt('restartedBack', back), host: oldAgain },
      { kind: 'clean-up' },
    ],
    [
      'reported as hopeless',
      'Failed',
      { journal: journalAt('restartedBack', late), host: silent },
      { kind: 'clean-up' },
    ],
  ]);

  test('it is told within 90 s of the verdict, however long the policy lets a new version take', () => {
    const times = { ...TIMES, restartTimeoutMs: 3_600_000 };
    const journal = journalAt('restartedBack', { ...back, since: NOW - 85_000 });
    expect(
      nextStep(situation({ signal: signalAt('Restart'), journal, host: silent, times })),
    ).toEqual(LOST);
  });
});

test('what the signal’s policy asked for wins over the flags', () => {
  const policy = { restartTimeoutMs: 500 };
  const journal = journalAt('restarted', { since: NOW - 1_000, process: before });
  const input = situation({ signal: signalAt('Restart'), journal, host: silent });
  expect(nextStep(input)).toMatchObject({ kind: 'await-service' });
  const work = { ...journal.work, policy };
  expect(nextStep({ ...input, journal: { ...journal, work } })).toEqual({
    kind: 'roll-back',
    reason: says('within 500 ms'),
  });
});

describe("beside k0s's own agent", () => {
  const observed: Partial<StepInput> = { beside: 'observe' };
  const aside = { kind: 'stand-aside', reason: says("k0s's own one works on this signal") };
  const refusing: Partial<StepInput> = { beside: 'refuse' };
  const overtaken: Partial<StepInput> = {
    journal: journalAt('started', { spent: { Downloading: 9 } }),
  };
  const itsOwn: Partial<StepInput> = {
    journal: IDLE,
    host: { ...running(OLD, before), ownAgent: true },
  };
  const bundle: Partial<StepInput> = {
    signal: signalAt('Downloading', airgap),
    journal: { phase: 'wanted', work: { signal: airgap }, spent: {} },
  };
  const twice: Partial<StepInput> = {
    journal: journalAt('restarting', { process: after, since: NOW }),
    host: running(NEW, after),
  };
  const watched: Partial<StepInput> = {
    journal: journalAt('soaking', { process: before, fresh: after, since: NOW }),
    host: running(NEW, third),
  };
  const ended: Partial<StepInput> = {
    ...observed,
    ...watched,
    host: { ...watched.host, exits: 1 },
  };
  const crashed = says('crash loop');
  const back: object = { kind: 'roll-back', reason: crashed };
  const disable = says('run the controllers of k0s with --disable-components=autopilot');
  const begin: unknown = expect.objectContaining({ kind: 'begin' });
  const oldWorker = {
    ...itsOwn,
    host: { ...running('v1.35.0+k0s.0', before), ownAgent: true },
  };
  check([
    [
      'a worker whose release heeds no switch is not told to use it',
      undefined,
      { ...observed, ...oldWorker },
      {
        kind: 'stand-aside',
        reason:
          "k0s's own agent carries out the signals of this host: k0s v1.35.0+k0s.0 cannot switch it off, as v1.35.1 and later can: let it do this upgrade, or start the agent of Refit with --beside-k0s replace",
      },
    ],
    [
      'a new signal waits until it is known whether it runs',
      undefined,
      { ...observed, ...itsOwn, host: { ...running(OLD, before), ownAgentDoubt: 'no profile' } },
      { kind: 'await-own-agent', reason: 'no profile' },
    ],
    [
      'a new signal that is to be refused waits for that, too',
      undefined,
      { ...refusing, ...itsOwn, host: { ...running(OLD, before), ownAgentDoubt: 'no profile' } },
      { kind: 'await-own-agent', reason: 'no profile' },
    ],
    [
      'a new signal is left to it',
      undefined,
      { ...observed, ...itsOwn },
      { kind: 'stand-aside', reason: disable },
    ],
    [
      'a new signal is refused',
      undefined,
      { ...refusing, ...itsOwn },
      { kind: 'report', status: 'FailedDownload', reason: disable, refused: true },
    ],
    [
      'a failure before any restart is reported where it is off',
      'ApplyingUpdate',
      {
        ...observed,
        journal: journalAt('failed', WHY),
        host: { ...running(OLD, before), ownAgent: false },
      },
      expect.not.objectContaining({ kind: 'stand-aside' }) as object,
    ],
    [
      'such a failure is left to nobody while k0s does not answer',
      'ApplyingUpdate',
      { ...observed, journal: journalAt('failed', WHY), host: silent },
      { kind: 'await-service' },
    ],
    [
      'what we did not get to fetch is not failed under it',
      'Restart',
      { ...observed, journal: journalAt('failed', { spent: { Downloading: 9 } }) },
      aside,
    ],
    [
      'it restarted what we had put in place, and the signal ended: no roll-back',
      'Completed',
      { ...observed, journal: journalAt('swapped'), host: running(NEW, after) },
      { kind: 'soak', process: after },
    ],
    [
      'it restarted the service before our crash: the process may be about to end',
      'Restart',
      { ...observed, ...twice },
      { kind: 'await-service', until: NOW + 45_000 },
    ],
    [
      '… and it has not ended',
      'Completed',
      { ...observed, ...twice, now: NOW + 45_000 },
      { kind: 'soak', process: after },
    ],
    [
      '… and it is off: the restart is ordered again',
      'Restart',
      twice,
      { kind: 'restart', process: after },
    ],
    ['a new signal is taken up as if it were off', undefined, itsOwn, begin as object],
    [
      'it is off: a new signal is taken up',
      undefined,
      { ...refusing, journal: IDLE },
      begin as object,
    ],
    [
      'it overtook us: its cordon would stay if we failed the signal',
      'Cordoning',
      { ...refusing, ...overtaken },
      aside,
    ],
    ...(['Cordoning', 'ApplyingUpdate', 'Restart', 'UnCordoning'] as const).flatMap(
      (status): Row[] => {
        const found = { journal: IDLE, host: running(NEW, after) };
        const its = { ...itsOwn, ...refusing };
        const lost = expect.not.objectContaining({ kind: 'stand-aside' }) as object;
        return [
          [
            `found at ${status}, and no report of ours (observe)`,
            status,
            { ...observed, ...found },
            aside,
          ],
          [
            `found at ${status}, and no report of ours (refuse)`,
            status,
            { ...refusing, ...found },
            aside,
          ],
          [`found at ${status}, where its agent is known to run (refuse)`, status, its, aside],
          [
            `found at ${status}, by our report`,
            status,
            { ...observed, ...found, isReported: true },
            lost,
          ],
          [
            `found at ${status}, and it is off`,
            status,
            { ...observed, ...found, host: { ...found.host, ownAgent: false } },
            lost,
          ],
        ];
      },
    ),
    [
      'we left it before our crash, and have not read it since: nothing is fetched again',
      'Downloading',
      { ...observed, journal: journalAt('started'), ended: 'left' },
      { kind: 'stand-aside', reason: says('was left') },
    ],
    [
      'it may have reported, while we were down, what a power loss started anew',
      'Restart',
      { ...observed, ...watched },
      { kind: 'soak', process: third },
    ],
    [
      '… and it is off',
      'Restart',
      { ...observed, ...watched, host: { ...watched.host, ownAgent: false } },
      back,
    ],
    [
      '… and we saw it end: no report of its own may come',
      'Restart',
      ended,
      report('RollingBack', { reason: crashed }),
    ],
    ['… then the old file goes back', 'RollingBack', ended, back],
    [
      '… and no API server takes our report: the roll-back does not wait',
      'Restart',
      { ...ended, isUnheard: true },
      back,
    ],
    [
      '… and a roll-back was written down before our crash',
      'Restart',
      { ...observed, ...watched, journal: journalAt('swappingBack', WHY) },
      { kind: 'soak', process: third },
    ],
    [
      '… and our restart of it failed: it was not ended',
      'Restart',
      {
        ...observed,
        host: running(NEW, after),
        journal: journalAt('swappingBack', { ...WHY, process: after }),
      },
      { kind: 'soak', process: after },
    ],
    [
      'we have not read our object since our start: what it reported meanwhile is waited for',
      'Restart',
      { ...ended, unreadUntil: NOW + 1 },
      { kind: 'await-service', until: NOW + 1 },
    ],
    ['… for a while', 'Restart', { ...ended, unreadUntil: NOW }, back],
    ['found at Downloading', 'Downloading', { ...observed, journal: IDLE }, begin as object],
    ['it overtook us, unseen at Cordoning', 'ApplyingUpdate', { ...observed, ...overtaken }, aside],
    ['it overtook us: we act as if it were off', 'Cordoning', overtaken, { kind: 'download' }],
    [
      'it overtook us',
      'Cordoning',
      { ...observed, journal: journalAt('started', { spent: { Downloading: 9 } }) },
      aside,
    ],
    [
      'work that began at Cordoning, with the journal lost, goes on',
      'Cordoning',
      { ...observed, journal: journalAt('started', { begunLate: true }) },
      { kind: 'download' },
    ],
    [
      'it overtook us before our first report',
      'Cordoning',
      { ...observed, journal: journalAt('started') },
      aside,
    ],
    [
      'a restart of its own may still come',
      'Restart',
      { ...observed, journal: journalAt('swappedBack', WHY), host: oldAgain },
      LOST,
    ],
    [
      'it overtook us after our drain: our cordon goes first',
      'Restart',
      { ...observed, journal: journalAt('ready', { drain: 'done' }) },
      { kind: 'uncordon' },
    ],
    [
      'our own status',
      'Restart',
      { ...observed, journal: journalAt('swapped') },
      { kind: 'restart', process: before },
    ],
    [
      'no status yet',
      undefined,
      { ...observed, journal: journalAt('started') },
      report('Downloading'),
    ],
    ['a bundle', 'Downloading', { ...observed, ...bundle }, { kind: 'fetch-bundle' }],
    [
      'then we stand aside',
      'Restart',
      { ...observed, journal: journalAt('ready', { drain: 'undone' }) },
      aside,
    ],
  ]);
});

describe('only the file at the path counts as done', () => {
  const elsewhere = running(NEW, after, false);
  check([
    [
      'the journal is lost, and the file was put back',
      'Restart',
      { journal: { phase: 'idle' }, host: elsewhere },
      expect.objectContaining({ as: expect.objectContaining({ phase: 'failed' }) }) as object,
    ],
  ]);
});
