/** Tests which situations of a plan people are told about, and in which order. */
import { describe, expect, test } from 'vitest';
import { later, MINUTE } from '../../../test/support/clock/times.ts';
import type { Wait } from '../model/decision.ts';
import { because, type ReasonCode } from '../model/reasons.ts';
import {
  type SituatedTarget,
  type SituationFacts,
  situationsOf,
  stoppedStarts,
} from './situations.ts';

function target(name: string, more: Partial<SituatedTarget> = {}): SituatedTarget {
  return {
    name,
    phase: 'pending',
    isThere: false,
    differs: false,
    exists: true,
    held: undefined,
    pinned: undefined,
    cause: undefined,
    ...more,
  };
}

function failed(name: string, code?: ReasonCode, more: Partial<SituatedTarget> = {}) {
  const cause = code && { code, message: `${name} has failed` };
  return target(name, { phase: 'failed', cause, ...more });
}

/** A plan that runs, with what differs. */
function facts(more: Partial<SituationFacts> = {}): SituationFacts {
  return {
    phase: 'running',
    cause: undefined,
    abort: undefined,
    paused: undefined,
    startsAgain: false,
    isRollBack: false,
    isRecordedRollBack: false,
    targets: [],
    failedHoldSlots: false,
    waits: [],
    failedChecks: [],
    ...more,
  };
}

const situations = (more: Partial<SituationFacts>) => situationsOf(facts(more));

/** Returns a wait of a target for `code`. */
function wait(code: ReasonCode, more: Partial<Wait> = {}): Wait {
  return { gate: 'gate', reason: { code, message: '' }, since: later(0), ...more };
}

const retry = (name: string | undefined, until?: string): Wait =>
  wait('DeadlineExceeded', {
    gate: 'retry',
    ...(name !== undefined && { target: name }),
    ...(until !== undefined && { until }),
  });

const MENDED = failed('w1', 'DeadlineExceeded', { isThere: true });
const ALONE = { kind: 'NodesFailed', isRollBack: false, code: undefined, budgets: [] };

describe('a plan that needs nothing', () => {
  test.each<[string, Partial<SituationFacts>]>([
    ['that runs without failures', { targets: [target('w1')] }],
    ['that is done', { phase: 'done', targets: [target('w1', { phase: 'done' })] }],
    ['that runs, and whose failed node runs the version now', { targets: [MENDED] }],
    ['that is new', { phase: 'new', targets: [target('w1')] }],
    [
      'that has ended, and whose failed node runs the version now although failed nodes keep slots',
      { phase: 'done', failedHoldSlots: true, targets: [MENDED] },
    ],
    [
      'whose targets in other phases run the version',
      { failedHoldSlots: true, targets: [target('w1', { phase: 'done', isThere: true })] },
    ],
  ])('there is no situation for a plan %s', (_plan, more) => {
    expect(situations(more)).toEqual([]);
  });
});

describe('the situation of a plan as a whole', () => {
  test.each<[string, Partial<SituationFacts>, object]>([
    [
      'that will be refused',
      { phase: 'new', cause: { code: 'Downgrade' }, targets: [failed('w1')] },
      { kind: 'WillBeRefused' },
    ],
    [
      'with mixed versions',
      { phase: 'failed', cause: { code: 'MixedVersions' } },
      { kind: 'MixedVersions' },
    ],
    [
      'that was edited and starts again',
      { phase: 'edited', startsAgain: true },
      { kind: 'StartsAgain' },
    ],
    [
      'that was edited',
      {
        phase: 'edited',
        abort: 'no',
        isRecordedRollBack: true,
        targets: [failed('w1'), target('w2')],
      },
      { kind: 'Edited', isRollBack: true, failed: ['w1'] },
    ],
    [
      'that differs',
      {
        phase: 'differs',
        targets: [target('w1', { phase: 'done', differs: true }), target('w2', { phase: 'done' })],
      },
      { kind: 'Differs', nodes: ['w1'] },
    ],
    ['without a target', { phase: 'empty' }, { kind: 'Empty' }],
    ['that was refused', { phase: 'invalid' }, { kind: 'Refused' }],
    ['that failed without a failed target', { phase: 'failed' }, { kind: 'Failed' }],
  ])('a plan %s', (_plan, more, expected) => {
    expect(situations(more)).toEqual([expected]);
  });

  test.each<[string, Partial<SituationFacts>, readonly string[]]>([
    ['names the nodes that run a release that may be bad', {}, ['w1']],
    ['names none while the plan runs', { phase: 'running' }, []],
    ['names none in a roll-back', { isRollBack: true }, []],
  ])('an aborted plan %s', (_plan, more, refused) => {
    const targets = [
      failed('w1', 'HealthCheckFailing', { isThere: true }),
      failed('w2'),
      MENDED,
      target('w3', { isThere: true }),
    ];
    expect(
      situations({ phase: 'failed', abort: 'no', failedChecks: ['pods'], targets, ...more }),
    ).toEqual([{ kind: 'Aborted', refused, checks: ['pods'] }]);
  });
});

describe('failed targets that run the version now', () => {
  test.each<ReasonCode>([
    'DeadlineExceeded',
    'DrainTooLong',
    'TargetFailed',
    'TargetRefused',
    'TargetGone',
  ])('a node that failed with %s needs nothing any more', (code) => {
    const targets = [failed('w1', code, { isThere: true })];
    expect(situations({ phase: 'failed', targets })).toEqual([
      { kind: 'Mended', nodes: ['w1'], isPartial: false },
    ]);
  });

  test('the plan is only partly carried out if other targets never started', () => {
    expect(situations({ phase: 'failed', targets: [MENDED, target('w2')] })).toEqual([
      { kind: 'Mended', nodes: ['w1'], isPartial: true },
    ]);
    const done = target('w2', { phase: 'done' });
    expect(situations({ phase: 'failed', targets: [MENDED, done] })).toEqual([
      { kind: 'Mended', nodes: ['w1'], isPartial: false },
    ]);
  });

  test('while the plan runs, they keep their slots if failed targets keep slots', () => {
    const targets = [MENDED, target('w2')];
    expect(situations({ failedHoldSlots: true, targets })).toEqual([
      { kind: 'MendedKeepsSlot', nodes: ['w1'] },
    ]);
  });

  test.each<[string, SituatedTarget]>([
    ['that a check refused', failed('w1', 'HealthCheckFailing', { isThere: true })],
    ['that was not uncordoned in time', failed('w1', 'UncordonTooLong', { isThere: true })],
    ['whose cause nobody knows', failed('w1', undefined, { isThere: true })],
  ])('a node %s may have a bad release', (_node, refused) => {
    const targets = [refused, failed('w2', 'DeadlineExceeded'), MENDED];
    const more = { failedChecks: ['pods'], isRollBack: true };
    expect(situations({ phase: 'failed', targets, ...more })).toEqual([
      {
        kind: 'ReleaseRefused',
        isRollBack: true,
        refused: ['w1'],
        nodes: ['w1', 'w2'],
        checks: ['pods'],
      },
    ]);
  });
});

describe('failed targets that do not run the version', () => {
  test.each<[string, readonly SituatedTarget[], object]>([
    [
      'with one cause',
      [failed('w1', 'DeadlineExceeded'), failed('w2', 'DeadlineExceeded')],
      { ...ALONE, nodes: ['w1', 'w2'], code: 'DeadlineExceeded' },
    ],
    [
      'with two causes',
      [failed('w1', 'DeadlineExceeded'), failed('w2', 'TargetRefused')],
      { ...ALONE, nodes: ['w1', 'w2'] },
    ],
    [
      'with a cause that only the node knows',
      [failed('w1', 'TargetFailed')],
      { ...ALONE, nodes: ['w1'] },
    ],
    ['with an unknown cause', [failed('w1')], { ...ALONE, nodes: ['w1'] }],
    [
      'of which one does not exist any more',
      [failed('w1', undefined, { exists: false }), failed('w2')],
      { ...ALONE, nodes: ['w1', 'w2'] },
    ],
    [
      'of which none exists any more',
      [failed('w1', undefined, { exists: false })],
      { kind: 'NodesGone', isRollBack: false, nodes: ['w1'] },
    ],
  ])('nodes %s', (_nodes, targets, expected) => {
    expect(situations({ phase: 'failed', targets })).toEqual([expected]);
    expect(situations({ targets })).toEqual([expected]);
  });

  test('the budgets that blocked drains are named, each once, but not those in other sentences', () => {
    const message = 'PodDisruptionBudget default/web allows no disruption';
    const blocked = (name: string, code: ReasonCode, text: string) =>
      failed(name, code, { cause: { code, message: text } });
    const targets = [
      blocked('w1', 'DrainTooLong', message),
      blocked('w2', 'DrainTooLong', message),
      blocked('w3', 'DeadlineExceeded', 'PodDisruptionBudget default/db allows no disruption'),
    ];
    expect(situations({ phase: 'failed', targets })).toEqual([
      { ...ALONE, nodes: ['w1', 'w2', 'w3'], budgets: ['default/web'] },
    ]);
  });

  test('a failure beside a mended node is that of the other node alone', () => {
    expect(situations({ targets: [MENDED, failed('w2')] })).toEqual([{ ...ALONE, nodes: ['w2'] }]);
  });
});

describe('failed targets that Refit tries again by itself', () => {
  const targets = [failed('w1', 'DeadlineExceeded'), failed('w2', 'DeadlineExceeded')];
  const both = { nodes: ['w1', 'w2'], code: 'DeadlineExceeded', budgets: [] };

  test.each<[string, readonly Wait[], object]>([
    [
      'at the first of two times',
      [retry('w1', later(2 * MINUTE)), retry('w2', later(MINUTE))],
      { kind: 'RetriedByItself', at: later(MINUTE), ...both },
    ],
    [
      'at the only known time',
      [retry('w1'), retry('w2', later(MINUTE))],
      { kind: 'RetriedByItself', at: later(MINUTE), ...both },
    ],
    [
      'at an unknown time',
      [retry('w1'), retry('w2')],
      { kind: 'RetriedByItself', at: undefined, ...both },
    ],
    [
      'except one of them',
      [retry('w1', later(0)), retry(undefined, later(0))],
      { ...ALONE, nodes: ['w2'], code: 'DeadlineExceeded' },
    ],
    [
      'not because of waits of other gates',
      [wait('DeadlineExceeded', { target: 'w1' }), wait('DeadlineExceeded', { target: 'w2' })],
      { ...ALONE, nodes: ['w1', 'w2'], code: 'DeadlineExceeded' },
    ],
  ])('%s', (_title, waits, expected) => {
    expect(situations({ targets, waits })).toEqual([expected]);
  });
});

describe('targets that a plan left out', () => {
  const skipped = (name: string, more: Partial<SituatedTarget> = {}) =>
    target(name, { phase: 'skipped', ...more });
  const held = { by: 'ada', reason: 'a demonstration' } as unknown as SituatedTarget['held'];
  const pinned = because('Pinned', 'w3 is pinned');
  const targets = [
    skipped('w1'),
    skipped('w2', { held }),
    skipped('w3', { pinned }),
    skipped('w4', { exists: false }),
    target('w5', { phase: 'done', held, pinned }),
  ];
  const LEFT_OUT = { kind: 'LeftOut', nodes: ['w1', 'w2'], held: ['w2'], isEdited: false };
  const PINNED = { kind: 'PinnedLeftOut', nodes: ['w3'] };

  test('the pinned ones are apart, and those without a Node are not named', () => {
    expect(situations({ phase: 'done', targets })).toEqual([LEFT_OUT, PINNED]);
  });

  test('only one of the two kinds may be there', () => {
    expect(situations({ phase: 'done', targets: targets.slice(0, 2) })).toEqual([LEFT_OUT]);
    expect(situations({ phase: 'done', targets: targets.slice(2) })).toEqual([PINNED]);
  });

  test('an edit is mentioned, after the edit itself', () => {
    expect(situations({ phase: 'edited', targets })).toEqual([
      { kind: 'Edited', isRollBack: false, failed: [] },
      { ...LEFT_OUT, isEdited: true },
      PINNED,
    ]);
  });

  test('they are not named if the plan was aborted, or starts again', () => {
    expect(situations({ phase: 'done', abort: 'no', targets })).toEqual([]);
    expect(situations({ phase: 'edited', startsAgain: true, targets })).toEqual([
      { kind: 'StartsAgain' },
    ]);
  });
});

describe('what a person can do so that targets start', () => {
  const HELD = wait('Held', { target: 'w1' });
  const starts = (waits: readonly Wait[], more: Partial<SituationFacts> = {}) =>
    stoppedStarts(facts({ waits, targets: [target('w1')], ...more }));

  test.each<[string, Wait, object]>([
    [
      'Nodes that others cordoned',
      wait('TooManyUnavailable', { uncordon: ['w2'] }),
      { kind: 'CordonedByOthers', nodes: ['w2'] },
    ],
    [
      'a wave without approval',
      wait('WaveNeedsApproval', { unapproved: 2 }),
      { kind: 'WaveUnapproved', wave: 2 },
    ],
    ['a held target', HELD, { kind: 'Held', target: 'w1' }],
    ['a closed window', wait('WindowClosed'), { kind: 'WindowClosed' }],
    ['a window that is too short', wait('WindowTooShort'), { kind: 'WindowClosed' }],
    ['a blackout', wait('Blackout'), { kind: 'Blackout' }],
  ])('%s: there is one situation, also if several targets wait for it', (_title, one, expected) => {
    expect(starts([one, one])).toEqual([expected]);
    expect(starts([one], { phase: 'new' })).toEqual([expected]);
    expect(situations({ waits: [one], targets: [target('w1')] })).toEqual([expected]);
  });

  test('other waits need nothing of a person, and the others keep their order', () => {
    expect(starts([wait('NoFreeSlot'), wait('Blackout'), wait('WindowClosed')])).toEqual([
      { kind: 'Blackout' },
      { kind: 'WindowClosed' },
    ]);
  });

  test.each<[string, Partial<SituationFacts>]>([
    ['has ended', { phase: 'done' }],
    ['was aborted', { abort: 'no' }],
    ['will be refused', { phase: 'new', cause: { code: 'Downgrade' } }],
    ['is paused', { paused: 'plan' }],
    ['is paused by its policy', { paused: 'policy' }],
  ])('there is nothing to do while the plan %s', (_title, more) => {
    expect(starts([wait('Blackout')], more)).toEqual([]);
  });

  test('a reason of a plan that runs stops no start', () => {
    expect(starts([wait('Blackout')], { cause: { code: 'Downgrade' } })).toEqual([
      { kind: 'Blackout' },
    ]);
  });

  test.each<[string, readonly Wait[], boolean]>([
    ['nothing else keeps it', [], true],
    ['the whole stage waits for a slot', [wait('NoFreeSlot', { ofStage: true })], true],
    ['others of its stage are held, too', [wait('Held', { ofStage: true })], true],
    ['others of its stage are pinned', [wait('Pinned', { ofStage: true })], true],
    ['others of its stage wait for it', [wait('EarlierNodes', { ofStage: true })], true],
    ['only one other target waits', [wait('HealthCheckFailing', { target: 'w2' })], true],
    [
      'its whole stage waits for something else',
      [wait('HealthCheckFailing', { ofStage: true })],
      false,
    ],
    [
      'Nodes that others cordoned take its place',
      [wait('NoFreeSlot', { uncordon: ['w2'] })],
      false,
    ],
  ])(
    'the end of the hold of a target helps only if nothing else keeps it: %s',
    (_title, waits, helps) => {
      const kinds = starts([HELD, ...waits]).map(({ kind }) => kind);
      expect(kinds.includes('Held')).toBe(helps);
    },
  );

  test('the end of a hold does not help while another target is in progress, or if it is of no target', () => {
    expect(starts([HELD], { targets: [target('w2', { phase: 'working' })] })).toEqual([]);
    expect(starts([wait('Held')])).toEqual([]);
  });
});
