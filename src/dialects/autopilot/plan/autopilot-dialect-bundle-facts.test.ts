/**
 * Checks the facts that the unit tests of the original, k0s's own autopilot, state about airgapupdate: one fact per
 * row. A row says if Refit behaves differently.
 */
import { describe, expect, test } from 'vitest';
import { passOver, wordsOf } from '../../../../test/support/builders/autopilot-passes.ts';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import {
  buildPlan,
  buildUpdate,
  listed,
  selected,
} from '../../../../test/support/builders/plans.ts';
import { buildSignal, type OriginalSignal } from '../../../../test/support/builders/signals.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { later } from '../../../../test/support/clock/times.ts';
import type { CommandStatus, Plan, PlanCommand, TargetSpec } from '../../../api/autopilot/plan.ts';
import type { World } from '../../../engine/contract/world.ts';

const { version, platforms } = buildUpdate();

interface Row {
  readonly plan: Plan;
  readonly world?: World;
}

const check = (rows: [string, Row, object][]): void => {
  test.each(rows)('%s', (_name, { plan, world = worldOf() }, outcome) => {
    const { plan: recorded, signalled } = passOver({ plan, world });
    expect({ ...wordsOf(recorded), ...(signalled.length > 0 ? { signalled } : {}) }).toEqual(
      outcome,
    );
  });
};

type Nodes = Parameters<typeof buildWorld>[1];
const worldOf = (nodes: Nodes = [buildNode('w1'), buildNode('w2'), buildNode('w3')]): World =>
  buildWorld([buildControlNode('c1')], nodes);

const bundle = (workers: TargetSpec): PlanCommand => ({
  airgapupdate: { version, platforms, workers },
});
const fresh = (...commands: PlanCommand[]): Plan => buildPlan({ commands });

type Words = Readonly<Record<string, string>>;
const entryOf = (id: number, words: Words): CommandStatus => ({
  id,
  state: 'SchedulableWait',
  airgapupdate: {
    workers: Object.entries(words).map(([name, word]) => ({
      name,
      state: `Signal${word}`,
      lastUpdatedTimestamp: later(1000),
    })),
  },
});
/** Returns a plan in progress in the form that a leader of the original writes. */
const underWay = (words: Words, concurrent = 1): Plan =>
  buildPlan(
    { commands: [bundle({ ...listed(...Object.keys(words)), limits: { concurrent } })] },
    { state: 'SchedulableWait', commands: [entryOf(0, words)] },
  );

const answered = (
  status: string,
  more: OriginalSignal = {},
): { annotations: Record<string, string> } => ({
  annotations: buildSignal({ status, command: { kind: 'airgapupdate' }, ...more }),
});
const only = (status: string, more: OriginalSignal = {}): World =>
  worldOf([buildNode('w1', answered(status, more)), buildNode('w2')]);

describe('a new plan', () => {
  const arm = { labels: { 'kubernetes.io/arch': 'arm64' } };
  check([
    [
      'all found: SchedulableWait; here the first signal is recorded in the same write',
      { plan: fresh(bundle(listed('w1', 'w2'))) },
      { state: 'SchedulableWait', 'bundle/w1': 'Sent', 'bundle/w2': 'Pending', signalled: ['w1'] },
    ],
    [
      'a worker is missing: IncompleteTargets, only that target says so',
      { plan: fresh(bundle(listed('w1', 'w9'))) },
      { state: 'IncompleteTargets', 'bundle/w1': 'Pending', 'bundle/w9': 'MissingNode' },
    ],
    [
      'another platform: IncompleteTargets and SignalMissingPlatform',
      {
        plan: fresh(bundle(listed('w1', 'w2'))),
        world: worldOf([buildNode('w1', arm), buildNode('w2')]),
      },
      { state: 'IncompleteTargets', 'bundle/w1': 'MissingPlatform', 'bundle/w2': 'Pending' },
    ],
    [
      'a controller that is a worker too stays: bundles come by Nodes only',
      { plan: fresh(bundle(selected())), world: worldOf([buildNode('c1'), buildNode('w1')]) },
      { state: 'SchedulableWait', 'bundle/c1': 'Sent', 'bundle/w1': 'Pending', signalled: ['c1'] },
    ],
    [
      'differs: an item with both commands runs both, bundles first; the original forgets them',
      {
        plan: fresh({
          ...bundle(listed('w1')),
          k0supdate: buildUpdate({ targets: { workers: listed('w1') } }),
        }),
      },
      { state: 'SchedulableWait', 'bundle/w1': 'Sent', w1: 'Pending', signalled: ['w1'] },
    ],
  ]);
});

describe('a plan under way', () => {
  check([
    [
      'all done: Completed',
      { plan: underWay({ w1: 'Completed' }) },
      { state: 'Completed', 'bundle/w1': 'Completed' },
    ],
    [
      'one sent: SchedulableWait',
      { plan: underWay({ w1: 'Sent', w2: 'Pending' }), world: only('Downloading') },
      { state: 'SchedulableWait', 'bundle/w1': 'Sent', 'bundle/w2': 'Pending' },
    ],
    [
      'two at a time; here both in one write',
      { plan: underWay({ w1: 'Pending', w2: 'Pending', w3: 'Pending' }, 2) },
      {
        state: 'SchedulableWait',
        'bundle/w1': 'Sent',
        'bundle/w2': 'Sent',
        'bundle/w3': 'Pending',
        signalled: ['w1', 'w2'],
      },
    ],
    [
      'one completed: its slot is free',
      { plan: underWay({ w1: 'Sent', w2: 'Pending' }), world: only('Completed') },
      {
        state: 'SchedulableWait',
        'bundle/w1': 'Completed',
        'bundle/w2': 'Sent',
        signalled: ['w2'],
      },
    ],
    [
      'Completed under the same plan id completes a pending target',
      { plan: underWay({ w1: 'Pending' }), world: only('Completed') },
      { state: 'Completed', 'bundle/w1': 'Completed' },
    ],
    [
      'Completed under another plan id is ignored',
      { plan: underWay({ w1: 'Pending' }), world: only('Completed', { planId: 'id0' }) },
      { state: 'SchedulableWait', 'bundle/w1': 'Sent', signalled: ['w1'] },
    ],
    [
      'Completed of an update is ignored',
      {
        plan: underWay({ w1: 'Pending' }),
        world: only('Completed', { command: { kind: 'k0supdate' } }),
      },
      { state: 'SchedulableWait', 'bundle/w1': 'Sent', signalled: ['w1'] },
    ],
    [
      'differs: Completed of another airgapupdate of the plan is ignored, the original takes it for this one',
      {
        plan: underWay({ w1: 'Pending' }),
        world: only('Completed', { command: { kind: 'airgapupdate', id: 1 } }),
      },
      { state: 'SchedulableWait', 'bundle/w1': 'Sent', signalled: ['w1'] },
    ],
    [
      'Failed: ApplyFailed and SignalApplyFailed',
      { plan: underWay({ w1: 'Sent', w2: 'Pending' }), world: only('Failed') },
      { state: 'ApplyFailed', 'bundle/w1': 'ApplyFailed', 'bundle/w2': 'Pending' },
    ],
    [
      'FailedDownload: the same',
      { plan: underWay({ w1: 'Sent' }), world: only('FailedDownload') },
      { state: 'ApplyFailed', 'bundle/w1': 'ApplyFailed' },
    ],
    [
      'differs: a worker that is not Ready waits, the original sends it its bundle',
      { plan: underWay({ w1: 'Pending' }), world: worldOf([buildNode('w1', {}, 'False')]) },
      { state: 'Schedulable', 'bundle/w1': 'Pending' },
    ],
  ]);
});
