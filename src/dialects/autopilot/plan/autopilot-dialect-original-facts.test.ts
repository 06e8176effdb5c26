/**
 * Checks the facts that the unit tests of the original, k0s's own autopilot, state about Plans: one fact per row. A row
 * says if Refit behaves differently.
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
import type { EndpointHealth } from '../../../engine/model/snapshot.ts';
import type { KubeObject } from '../../../kube/resources.ts';

interface Pass {
  readonly plan: Plan;
  readonly world?: World;
  readonly health?: readonly EndpointHealth[];
}

/**
 * Returns the result of one turn of a new leader: the states in the status, and the nodes that are signalled after the
 * turn.
 */
function outcomeOf({ world = EVERYONE, ...pass }: Pass): object {
  const { plan, signalled } = passOver({ ...pass, world });
  return { ...wordsOf(plan), ...(signalled.length > 0 ? { signalled } : {}) };
}

const check = (rows: [string, Pass, object][]): void => {
  test.each(rows)('%s', (_name, pass, outcome) => expect(outcomeOf(pass)).toEqual(outcome));
};

const answered = (signal: OriginalSignal): { annotations: Record<string, string> } => ({
  annotations: buildSignal(signal),
});
const worldOf = (controllers: KubeObject[], ...workers: KubeObject[]): World =>
  buildWorld(controllers, workers);
const EVERYONE = worldOf(
  [buildControlNode('c1'), buildControlNode('c2')],
  buildNode('w1'),
  buildNode('w2'),
  buildNode('w3'),
);

type Words = Readonly<Record<string, string>>;
const entries = (words: Words): { name: string; state: string; lastUpdatedTimestamp: string }[] =>
  Object.entries(words).map(([name, word]) => ({
    name,
    state: `Signal${word}`,
    lastUpdatedTimestamp: later(1000),
  }));
const commandOf = (controllers?: TargetSpec, workers?: TargetSpec): PlanCommand => ({
  k0supdate: buildUpdate({
    targets: { ...(controllers ? { controllers } : {}), ...(workers ? { workers } : {}) },
  }),
});
const entryOf = (id: number, state: string, controllers: Words, workers: Words): CommandStatus => ({
  id,
  state,
  k0supdate: { controllers: entries(controllers), workers: entries(workers) },
});
/** Returns a plan in progress in the form that a leader of the original writes. */
const underWay = (controllers: Words, workers: Words, concurrent = 1): Plan =>
  buildPlan(
    {
      commands: [
        commandOf(listed(...Object.keys(controllers)), {
          ...listed(...Object.keys(workers)),
          limits: { concurrent },
        }),
      ],
    },
    { state: 'SchedulableWait', commands: [entryOf(0, 'SchedulableWait', controllers, workers)] },
  );
const fresh = (...commands: PlanCommand[]): Plan => buildPlan({ commands });

describe('a new plan', () => {
  const arm = { labels: { 'kubernetes.io/arch': 'arm64' } };
  check([
    [
      'all found: SchedulableWait; here its first signal is recorded in the same write',
      { plan: fresh(commandOf(listed('c1'), listed('w1'))) },
      { state: 'SchedulableWait', c1: 'Sent', w1: 'Pending', signalled: ['c1'] },
    ],
    [
      'only a missing controller is SignalMissingNode, and its plan ends as IncompleteTargets',
      { plan: fresh(commandOf(listed('c1', 'c9'), listed('w1'))) },
      { state: 'IncompleteTargets', c1: 'Pending', c9: 'MissingNode', w1: 'Pending' },
    ],
    [
      'a missing worker is SignalMissingNode, and its plan ends as IncompleteTargets',
      { plan: fresh(commandOf(listed('c1'), listed('w9'))) },
      { state: 'IncompleteTargets', c1: 'Pending', w9: 'MissingNode' },
    ],
    [
      'a node whose platform has no download is SignalMissingPlatform, and the plan IncompleteTargets',
      {
        plan: fresh(commandOf(undefined, listed('w1', 'w2'))),
        world: worldOf([], buildNode('w1', arm), buildNode('w2')),
      },
      { state: 'IncompleteTargets', w1: 'MissingPlatform', w2: 'Pending' },
    ],
    ...['linux-arm', 'windows-amd64'].map((platform): [string, Pass, object] => {
      const [os = '', arch = ''] = platform.split('-');
      const labels = { 'kubernetes.io/os': os, 'kubernetes.io/arch': arch };
      const platforms = { [platform]: { url: 'https://example.com/k0s' } };
      const update = buildUpdate({ platforms, targets: { workers: listed('w1') } });
      return [
        `a ${platform} node gets a signal if the plan has a download for it, whichever agent runs there`,
        {
          plan: fresh({ k0supdate: update }),
          world: worldOf([], buildNode('w1', { labels })),
        },
        { state: 'SchedulableWait', w1: 'Sent', signalled: ['w1'] },
      ];
    }),
    [
      'one selected node of an unsupported platform ends the whole plan as IncompleteTargets',
      {
        plan: fresh(commandOf(undefined, selected())),
        world: worldOf([], buildNode('w1', arm), buildNode('w2')),
      },
      { state: 'IncompleteTargets', w1: 'MissingPlatform', w2: 'Pending' },
    ],
    [
      'a controller that is a worker too is dropped from the workers',
      {
        plan: fresh(commandOf(listed('n1'), selected())),
        world: worldOf([buildControlNode('n1')], buildNode('n1'), buildNode('w1')),
      },
      { state: 'SchedulableWait', n1: 'Sent', w1: 'Pending', signalled: ['n1'] },
    ],
    [
      'a selector that matches nothing: Completed',
      { plan: fresh(commandOf(undefined, selected('no=such'))) },
      { state: 'Completed' },
    ],
    [
      'a missing node in the second command refuses the plan before the first one begins',
      { plan: fresh(commandOf(undefined, listed('w1')), commandOf(undefined, listed('w9'))) },
      { state: 'IncompleteTargets', '0/w1': 'Pending', '1/w9': 'MissingNode' },
    ],
    [
      'Refit refuses an invalid label selector; the original selects every node',
      { plan: fresh(commandOf(undefined, selected('pool blue'))) },
      { state: 'Warning' },
    ],
    [
      'Refit refuses an unsupported field selector; the original selects no node and says Completed',
      { plan: fresh(commandOf(undefined, selected('', 'status.phase=x'))) },
      { state: 'Warning' },
    ],
    [
      'Refit refuses a plan without commands; the original can never write a status for it',
      { plan: fresh() },
      { state: 'Warning' },
    ],
    [
      'Refit refuses an unknown command; the original leaves the status of the plan empty',
      { plan: fresh({}) },
      { state: 'Warning' },
    ],
    [
      'Refit refuses a concurrency of 0; the original waits forever',
      { plan: fresh(commandOf(undefined, { ...listed('w1'), limits: { concurrent: 0 } })) },
      { state: 'Warning' },
    ],
    [
      'differs: an empty id is refused at once, the original only when it signals',
      { plan: buildPlan({ id: '' }) },
      { state: 'Warning' },
    ],
    [
      'Refit refuses a plan with another name than autopilot; the original ignores it silently',
      { plan: { ...buildPlan(), metadata: { ...buildPlan().metadata, name: 'other' } } },
      { state: 'Warning' },
    ],
  ]);
});

describe('a plan under way', () => {
  const nodes = (first?: OriginalSignal, second?: OriginalSignal): World =>
    worldOf(
      [buildControlNode('c1'), buildControlNode('c2')],
      buildNode('w1', first ? answered(first) : {}),
      buildNode('w2', second ? answered(second) : {}),
      buildNode('w3'),
    );
  const controllers = (first?: OriginalSignal): World =>
    worldOf(
      [buildControlNode('c1', first ? answered(first) : {}), buildControlNode('c2')],
      buildNode('w1'),
    );
  check([
    [
      'a plan is Completed when all its nodes have completed',
      { plan: underWay({ c1: 'Completed' }, { w1: 'Completed' }) },
      { state: 'Completed', c1: 'Completed', w1: 'Completed' },
    ],
    [
      'a plan is SchedulableWait while a node is in progress',
      { plan: underWay({}, { w1: 'Sent', w2: 'Pending' }), world: nodes({ status: 'Restart' }) },
      { state: 'SchedulableWait', w1: 'Sent', w2: 'Pending' },
    ],
    [
      'a node in state SignalPending gets its signal and is then in state SignalSent',
      { plan: underWay({}, { w1: 'Completed', w2: 'Pending' }) },
      { state: 'SchedulableWait', w1: 'Completed', w2: 'Sent', signalled: ['w2'] },
    ],
    [
      'a busy controller blocks other controllers and all workers',
      {
        plan: underWay({ c1: 'Sent', c2: 'Pending' }, { w1: 'Pending' }),
        world: controllers({ status: 'Downloading' }),
      },
      { state: 'SchedulableWait', c1: 'Sent', c2: 'Pending', w1: 'Pending' },
    ],
    [
      'a controller of whose signal nothing is seen is signalled, and still blocks the others',
      { plan: underWay({ c1: 'Sent', c2: 'Pending' }, {}) },
      { state: 'SchedulableWait', c1: 'Sent', c2: 'Pending', signalled: ['c1'] },
    ],
    [
      'controllers done, workers pending: a worker',
      { plan: underWay({ c1: 'Completed' }, { w1: 'Pending', w2: 'Pending' }) },
      { state: 'SchedulableWait', c1: 'Completed', w1: 'Sent', w2: 'Pending', signalled: ['w1'] },
    ],
    [
      'two at a time; here both in one write',
      { plan: underWay({}, { w1: 'Pending', w2: 'Pending', w3: 'Pending' }, 2) },
      { state: 'SchedulableWait', w1: 'Sent', w2: 'Sent', w3: 'Pending', signalled: ['w1', 'w2'] },
    ],
    [
      'two at a time, one busy: one more',
      {
        plan: underWay({}, { w1: 'Sent', w2: 'Pending', w3: 'Pending' }, 2),
        world: nodes({ status: 'Restart' }),
      },
      { state: 'SchedulableWait', w1: 'Sent', w2: 'Sent', w3: 'Pending', signalled: ['w2'] },
    ],
    [
      'a node that completed frees its slot at once; the original may show it as sent until the next transition',
      { plan: underWay({}, { w1: 'Sent', w2: 'Pending' }), world: nodes({ status: 'Completed' }) },
      { state: 'SchedulableWait', w1: 'Completed', w2: 'Sent', signalled: ['w2'] },
    ],
    [
      'Completed under the same plan id completes a pending target',
      {
        plan: underWay({}, { w1: 'Pending', w2: 'Completed' }),
        world: nodes({ status: 'Completed' }),
      },
      { state: 'Completed', w1: 'Completed', w2: 'Completed' },
    ],
    [
      'Completed under another plan id is ignored',
      {
        plan: underWay({}, { w1: 'Pending' }),
        world: nodes({ planId: 'id0', status: 'Completed' }),
      },
      { state: 'SchedulableWait', w1: 'Sent', signalled: ['w1'] },
    ],
    [
      'Failed: ApplyFailed and SignalApplyFailed',
      { plan: underWay({}, { w1: 'Sent', w2: 'Pending' }), world: nodes({ status: 'Failed' }) },
      { state: 'ApplyFailed', w1: 'ApplyFailed', w2: 'Pending' },
    ],
    [
      'FailedDownload: the same',
      { plan: underWay({}, { w1: 'Sent' }), world: nodes({ status: 'FailedDownload' }) },
      { state: 'ApplyFailed', w1: 'ApplyFailed' },
    ],
    [
      'FailedDownload of a pending target: the same',
      { plan: underWay({}, { w1: 'Pending' }), world: nodes({ status: 'FailedDownload' }) },
      { state: 'ApplyFailed', w1: 'ApplyFailed' },
    ],
    [
      'differs: while another node is in flight the plan goes on until that has ended; the original forgets it',
      {
        plan: underWay({}, { w1: 'Sent', w2: 'Sent', w3: 'Pending' }, 2),
        world: nodes({ status: 'FailedDownload' }, { status: 'Restart' }),
      },
      { state: 'SchedulableWait', w1: 'ApplyFailed', w2: 'Sent', w3: 'Pending' },
    ],
    [
      'differs: a result of another command is ignored, the original takes it for this one',
      {
        plan: underWay({}, { w1: 'Sent' }),
        world: nodes({ status: 'Completed', command: { id: 1 } }),
      },
      { state: 'SchedulableWait', w1: 'Sent', signalled: ['w1'] },
    ],
    [
      'unlike in the original, a plan in Schedulable is not Completed while a node is in progress',
      {
        plan: {
          ...underWay({}, { w1: 'Sent' }),
          status: {
            state: 'Schedulable',
            commands: [entryOf(0, 'Schedulable', {}, { w1: 'Sent' })],
          },
        },
        world: nodes({ status: 'Restart' }),
      },
      { state: 'SchedulableWait', w1: 'Sent' },
    ],
    [
      'a node that is deleted after its signal fails the plan; the original waits forever',
      { plan: underWay({}, { w9: 'Sent' }) },
      { state: 'ApplyFailed', w9: 'ApplyFailed' },
    ],
    [
      'a node that is deleted before its signal is SignalMissingNode, and the plan IncompleteTargets',
      { plan: underWay({}, { w9: 'Pending' }) },
      { state: 'IncompleteTargets', w9: 'MissingNode' },
    ],
  ]);
});

describe('health', () => {
  const down: readonly EndpointHealth[] = [{ name: 'c2', ready: false }];
  const sick = worldOf([], buildNode('w1', {}, 'False'), buildNode('w2'));
  check([
    [
      'a plan is Schedulable while an API server is not ready',
      { plan: fresh(commandOf(listed('c1'))), health: down },
      { state: 'Schedulable', c1: 'Pending' },
    ],
    [
      'differs: all ControlNodes count, the original asks only those in the plan',
      { plan: underWay({ c1: 'Pending' }, {}), health: down },
      { state: 'Schedulable', c1: 'Pending' },
    ],
    [
      'a worker that is not Ready: Schedulable',
      { plan: fresh(commandOf(undefined, listed('w1'))), world: sick },
      { state: 'Schedulable', w1: 'Pending' },
    ],
    [
      'Refit signals the other workers while a worker is not Ready; the original signals none',
      { plan: fresh(commandOf(undefined, listed('w1', 'w2'))), world: sick },
      { state: 'SchedulableWait', w1: 'Pending', w2: 'Sent', signalled: ['w2'] },
    ],
    [
      'Refit sees a failed worker while another worker is not Ready; the original does not see it',
      {
        plan: underWay({}, { w1: 'Pending', w2: 'Sent' }, 2),
        world: worldOf(
          [],
          buildNode('w1', {}, 'False'),
          buildNode('w2', answered({ status: 'FailedDownload' })),
        ),
      },
      { state: 'ApplyFailed', w1: 'Pending', w2: 'ApplyFailed' },
    ],
    [
      'a completed worker keeps its slot until it is Ready; the original starts the next worker',
      {
        plan: underWay({}, { w1: 'Sent', w2: 'Pending' }),
        world: worldOf(
          [],
          buildNode('w1', answered({ status: 'Completed' }), 'False'),
          buildNode('w2'),
        ),
      },
      { state: 'SchedulableWait', w1: 'Sent', w2: 'Pending' },
    ],
  ]);
});

describe('several commands', () => {
  const two = (first: CommandStatus, second: CommandStatus): Plan =>
    buildPlan(
      { commands: [commandOf(undefined, listed('w1')), commandOf(undefined, listed('w1'))] },
      { state: 'SchedulableWait', commands: [first, second] },
    );
  const completed = entryOf(0, 'Completed', {}, { w1: 'Completed' });
  const leftover = worldOf([], buildNode('w1', answered({ status: 'Completed' })));
  check([
    [
      'the result of a completed command does not complete the next command, unlike in the original',
      {
        plan: two(completed, entryOf(1, 'SchedulableWait', {}, { w1: 'Pending' })),
        world: leftover,
      },
      { state: 'SchedulableWait', '0/w1': 'Completed', '1/w1': 'Sent', signalled: ['w1'] },
    ],
    [
      'all commands completed: Completed',
      {
        plan: two(completed, entryOf(1, 'SchedulableWait', {}, { w1: 'Completed' })),
        world: leftover,
      },
      { state: 'Completed', '0/w1': 'Completed', '1/w1': 'Completed' },
    ],
    [
      'Refit starts no node if a plan has more commands than recorded; the original only logs it',
      {
        plan: {
          ...two(completed, completed),
          status: {
            state: 'SchedulableWait',
            commands: [entryOf(0, 'SchedulableWait', {}, { w1: 'Pending' })],
          },
        },
        world: worldOf([], buildNode('w1')),
      },
      { state: 'SchedulableWait', w1: 'Pending' },
    ],
    [
      'Refit follows a node in progress after its command is removed; the original stops',
      {
        plan: {
          ...fresh(commandOf(undefined, listed('w1'))),
          status: two(completed, entryOf(1, 'SchedulableWait', {}, { w1: 'Sent' })).status ?? {
            state: '',
            commands: [],
          },
        },
        world: worldOf([], buildNode('w1', answered({ status: 'Completed', command: { id: 1 } }))),
      },
      { state: 'SchedulableWait', '0/w1': 'Completed', '1/w1': 'Completed' },
    ],
  ]);
});

describe('a plan that has ended', () => {
  const leftovers = worldOf([], buildNode('w1'));
  test.each([
    'Completed',
    'ApplyFailed',
    'IncompleteTargets',
    'Warning',
    'Restricted',
    'SomethingNew',
  ])('a plan that ended in state %s keeps this state and signals no node', (state) => {
    const plan = underWay({}, { w1: 'Sent' });
    const ended = { ...plan, status: { state, commands: plan.status?.commands ?? [] } };
    expect(outcomeOf({ plan: ended, world: leftovers })).toEqual({ state, w1: 'Sent' });
  });
});
