/** Tests the steps of an update on a host where the own agent of k0s runs as well. */
import { describe, expect } from 'vitest';
import {
  after,
  airgap,
  before,
  journalAt,
  NEW,
  NOW,
  OLD,
  running,
  signalAt,
  silent,
  TIMES,
  third,
  WHY,
} from '../../../test/support/builders/agent-situations.ts';
import {
  check,
  LOST,
  oldAgain,
  type Row,
  report,
  says,
} from '../../../test/support/expectations/update-steps.ts';
import { IDLE } from '../journal.ts';
import type { StepInput } from '../step-input.ts';

describe("beside k0s's own agent", () => {
  const observed: Partial<StepInput> = { beside: 'observe' };
  const aside = { kind: 'stand-aside', reason: says("so k0s's own agent works on this signal") };
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
          "k0s's own agent carries out the signals of this host: only k0s v1.35.1 and later can switch that agent off, and this is k0s v1.35.0+k0s.0: let k0s's own agent do this upgrade, or start the agent of Refit with --beside-k0s replace",
      },
    ],
    [
      "an agent that acts although k0s's own agent may act takes the file away that the other agent would swap",
      'ApplyingUpdate',
      { beside: 'replace', journal: journalAt('kept') },
      { kind: 'swap', overtakes: true },
    ],
    [
      'after a crash within the swap, too',
      'ApplyingUpdate',
      { beside: 'replace', journal: journalAt('swapping') },
      { kind: 'swap', overtakes: true },
    ],
    [
      'after the restart it takes the file away again, because the other download may have ended late',
      'Restart',
      {
        beside: 'replace',
        journal: journalAt('restarted', { process: before, since: NOW - 1_000 }),
        host: running(NEW, after),
      },
      { kind: 'soak', process: after, overtakes: true },
    ],
    [
      "an agent whose binary k0s's own agent replaced first waits for the restart of that agent",
      'ApplyingUpdate',
      {
        beside: 'replace',
        journal: journalAt('ready', { entered: { status: 'ApplyingUpdate', at: NOW - 1_000 } }),
        host: running(OLD, before, false),
      },
      { kind: 'await-service', until: NOW - 1_000 + TIMES.restartTimeoutMs },
    ],
    [
      '… but no longer than a restart may take',
      'ApplyingUpdate',
      {
        beside: 'replace',
        journal: journalAt('ready', {
          entered: { status: 'ApplyingUpdate', at: NOW - TIMES.restartTimeoutMs },
        }),
        host: running(OLD, before, false),
      },
      { kind: 'give-up', reason: says('does not run the file') },
    ],
    [
      "where k0s's own agent is off, a file that somebody replaced fails the update at once",
      'ApplyingUpdate',
      {
        beside: 'replace',
        journal: journalAt('ready', { entered: { status: 'ApplyingUpdate', at: NOW } }),
        host: { ...running(OLD, before, false), ownAgent: false },
      },
      { kind: 'give-up', reason: says('does not run the file') },
    ],
    [
      "where k0s's own agent is off, a swap takes nothing away",
      'ApplyingUpdate',
      {
        beside: 'replace',
        journal: journalAt('kept'),
        host: { ...running(OLD, before), ownAgent: false },
      },
      { kind: 'swap' },
    ],
    [
      "an agent that leaves signals to k0s's own agent takes nothing away",
      'ApplyingUpdate',
      { ...observed, journal: journalAt('kept') },
      { kind: 'swap' },
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
      'after its own swap the agent restarts the service, although k0s also has an agent',
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
