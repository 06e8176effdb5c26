/** Tests the steps of an update that does not fail: up to the swap, the cordon and the restart. */
import { describe } from 'vitest';
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
  TIMES,
  WHY,
  workFor,
} from '../../../test/support/builders/agent-situations.ts';
import { check, failure, report, says } from '../../../test/support/expectations/update-steps.ts';

const oldLeft = running(OLD, before, false);

const newRuns = running(NEW, after);

describe('with a snapshot of etcd', () => {
  const work = workFor(signalAt(), { policy: { etcdSnapshot: { require: true } } });
  const wanted = journalAt('ready', { work });
  const snapshot = { at: '2026-01-01T00:00:00Z', path: '/s', bytes: 1, sha256: 'ab' };
  const taken = journalAt('ready', { work, snapshot });
  check([
    ['before the cordon', 'Downloading', { journal: wanted }, { kind: 'snapshot-etcd' }],
    ['taken', 'Downloading', { journal: taken }, report('Cordoning')],
    ['taken, drained', 'ApplyingUpdate', { journal: taken }, { kind: 'keep-previous' }],
    ['the journal was lost', 'ApplyingUpdate', { journal: wanted }, { kind: 'snapshot-etcd' }],
    [
      'the journal was lost, and the report has a snapshot',
      'ApplyingUpdate',
      { journal: wanted, reportedSnapshot: snapshot },
      { kind: 'snapshot-etcd', reported: snapshot },
    ],
    [
      'the journal was lost during the drain',
      'Cordoning',
      { journal: wanted, host: silent },
      { kind: 'cordon-and-drain' },
    ],
    ['service down', 'Downloading', { journal: wanted, host: silent }, { kind: 'await-service' }],
    [
      'another file runs',
      'Downloading',
      { journal: wanted, host: oldLeft },
      { kind: 'give-up', reason: says('roll-back would be impossible') },
    ],
  ]);
});

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
      'an agent that crashed right after the swap of the binary does the swap again',
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
  const awaits = { kind: 'await-leader' };
  const make = { kind: 'cordon-and-drain' };
  const uncordon = { kind: 'uncordon' };
  check([
    ['the agent', 'Cordoning', { ...at(), ...by('self') }, make],
    ['the agent, cut short', 'Cordoning', { ...at('started'), ...by('self') }, make],
    ['the agent, done', 'Cordoning', { ...at('done'), ...by() }, report('ApplyingUpdate')],
    ['the leader', 'Cordoning', { ...at(), ...by('leader') }, awaits],
    [
      'the leader, after an agent that was cut short',
      'Cordoning',
      { ...at('started'), ...by('leader') },
      awaits,
    ],
    ['nobody knows', 'Cordoning', { ...at(), ...by('unknown') }, awaits],
    ['nobody can be asked', 'Cordoning', { ...at(), ...by() }, awaits],
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
    ['back: the leader', 'UnCordoning', { ...done(), ...by('leader') }, awaits],
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
      awaits,
    ],
    ['back: nobody knows', 'UnCordoning', { ...done(), ...by('unknown') }, awaits],
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
