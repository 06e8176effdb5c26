/** Tests the steps of an update after the new version has failed. */
import { describe, expect, test } from 'vitest';
import {
  after,
  before,
  hanging,
  journalAt,
  NEW,
  NOW,
  running,
  signalAt,
  silent,
  situation,
  TIMES,
  WHY,
} from '../../../test/support/builders/agent-situations.ts';
import {
  check,
  failure,
  LOST,
  oldAgain,
  says,
} from '../../../test/support/expectations/update-steps.ts';
import { nextStep } from '../next-step.ts';

const hangs = hanging(after);

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
