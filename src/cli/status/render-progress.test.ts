/** Tests what `refit status` prints before the first node starts and while a plan runs. */
import { describe, expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import {
  at,
  C1,
  C2,
  C3,
  FIRST,
  report,
  running,
  type Situation,
  THEIRS,
  textOf,
  W1,
  W2,
  W3,
  WORKERS,
} from '../../../test/support/builders/status-texts.ts';
import { recorded, signalled, statusOf } from '../../../test/support/builders/views.ts';
import { later, MINUTE } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import { CONDITIONS_ANNOTATION } from '../../engine/model/written-conditions.ts';

const NOT_READY = buildNode('w2', { labels: { pool: 'blue' } }, 'False');

const CONTROLLERS_DONE = recorded({
  c1: 'SignalCompleted',
  c2: 'SignalCompleted',
  c3: 'SignalCompleted',
});

/** Returns the plan after the leader has found that an API server is not ready. */
const held = (plan: Plan, message: string): Plan => {
  const blocked = { type: 'Blocked', status: 'True', reason: 'ControlPlaneNotReady', message };
  const annotations = { [CONDITIONS_ANNOTATION]: JSON.stringify([blocked]) };
  return { ...plan, metadata: { ...plan.metadata, annotations } };
};

describe('before anything moves', () => {
  test.each<[string, Situation, string[]]>([
    ['no plan', {}, ['There is no plan.']],
    [
      'a plan that nobody takes up',
      { plans: [buildPlan()], leader: { state: 'none' } },
      [
        'No leader: no refit controller holds lease k0s-autopilot/k0s-autopilot-controller. No new node starts until one runs.',
        'Plan autopilot (id1)  new 0/6 for 1 min  to v1.36.3+k0s.2',
        '  controllers  0/3  ○○○',
        '  workers      0/3  ○○○',
        '  NODE  STATE  FOR  MESSAGE',
        '  c1    next',
        '  waits   2 controllers queued (1 at a time) (1 min)',
        '          3 workers wait until the controllers are done (1 min)',
      ],
    ],
    [
      'a selector that matches nothing, which looks like a mistake in it',
      { plans: [buildPlan()], workers: [] },
      [
        'Plan autopilot (id1)  new 0/3 for 1 min  to v1.36.3+k0s.2',
        '  controllers  0/3  ○○○',
        '  workers      0/0  nothing matched labels "pool=blue"',
        '  NODE  STATE  FOR  MESSAGE',
        '  c1    next',
        '  waits   2 controllers queued (1 at a time) (1 min)',
      ],
    ],
    [
      'a plan that will be refused',
      { plans: [buildPlan({ id: '' })] },
      [
        'Plan autopilot  new for 1 min',
        '  why     spec.id: "" is empty; use for example 2026-11-20',
        '  to do   Refit will refuse this plan. Correct the field that the message names.',
      ],
    ],
    [
      'a plan that was refused',
      {
        plans: [
          buildPlan(
            { id: '' },
            { state: 'Warning', commands: [{ id: 0, state: 'Warning', description: 'spec.id …' }] },
          ),
        ],
      },
      [
        'Plan autopilot  invalid  to v1.36.3+k0s.2',
        '  why     spec.id …',
        '  to do   Refused. Correct the field that the message names. Then: delete the Plan and apply it again.',
      ],
    ],
    [
      'a target that does not exist',
      {
        plans: [
          buildPlan(
            {},
            statusOf(
              'IncompleteTargets',
              recorded({ c1: 'SignalMissingNode', c2: 'SignalPending' }),
              [],
              'c1 does not exist as a controller',
            ),
          ),
        ],
        leader: { state: 'none' },
      },
      [
        'Plan autopilot (id1)  incomplete 0/2 after 1 s, 59 s ago  to v1.36.3+k0s.2',
        '  controllers  0/2  ✗○',
        '  workers      0/0  nothing matched labels "pool=blue"',
        '  why     c1 does not exist as a controller',
        '  to do   Failed. Correct the name or take it out of the plan; if the node is to be upgraded, join it to the cluster first. Then: delete the Plan and apply it again.',
      ],
    ],
  ])('%s', async (_name, situation, lines) => {
    expect(await textOf(situation)).toEqual(lines);
  });
});

describe('while it runs', () => {
  test.each<[string, Situation, string[]]>([
    [
      'a controller at a step',
      {
        plans: [running(FIRST, WORKERS)],
        controllers: [signalled(C1, at('ApplyingUpdate')), C2, C3],
      },
      [
        'Plan autopilot (id1)  running 0/6 for 59 s  to v1.36.3+k0s.2',
        '  controllers  0/3  ◐○○',
        '  workers      0/3  ○○○',
        '  NODE  STATE           FOR   MESSAGE',
        '  c1    ApplyingUpdate  20 s',
        '  c2    next',
        '  waits   2 controllers queued (1 at a time) (59 s)',
        '          3 workers wait until the controllers are done (59 s)',
        THEIRS('c1'),
      ],
    ],
    [
      'an API server that only this machine does not reach: the controller is not done, and nothing is blamed',
      {
        workers: [],
        plans: [running(FIRST, [])],
        controllers: [signalled(C1, at('Completed')), C2, C3],
        ask: async () =>
          await Promise.resolve([
            { name: 'c2', ready: false, isSilent: true, detail: 'ETIMEDOUT' },
          ]),
      },
      [
        'Plan autopilot (id1)  running 0/3 for 59 s  to v1.36.3+k0s.2',
        '  controllers  0/3  ◐○○',
        '  workers      0/0  nothing matched labels "pool=blue"',
        '  NODE  STATE                FOR   MESSAGE',
        '  c1    upgraded, verifying  20 s',
        '  c2    next',
        '  waits   2 controllers queued (1 at a time) (59 s)',
        "  unknown this machine gets no answer from the API server of c2; only the leader's check counts",
        THEIRS('c1'),
      ],
    ],
    [
      'a controller that is done by its own word only, as the leader says',
      {
        workers: [],
        plans: [
          held(
            running(FIRST, []),
            'the API server of c2 (/readyz says 500), c3 (no answer) is not ready',
          ),
        ],
        controllers: [signalled(C1, at('Completed')), C2, C3],
      },
      [
        'Plan autopilot (id1)  running 0/3 for 59 s  to v1.36.3+k0s.2',
        '  controllers  0/3  ◐○○',
        '  workers      0/0  nothing matched labels "pool=blue"',
        '  NODE  STATE                FOR   MESSAGE',
        '  c1    upgraded, verifying  20 s  the API server of c2 (/readyz says 500), c3 (no answer) is not ready (ControlPlaneNotReady)',
        '  c2    next',
        '  waits   2 controllers queued (1 at a time) (59 s)',
        '  ends    when every API server answers that it is ready',
        THEIRS('c1'),
      ],
    ],
    [
      'an end that is seen and not yet recorded',
      {
        workers: [],
        plans: [running(FIRST, [])],
        controllers: [signalled(C1, at('Completed')), C2, C3],
      },
      [
        'Plan autopilot (id1)  running 0/3 for 59 s  to v1.36.3+k0s.2',
        '  controllers  0/3  ◐○○',
        '  workers      0/0  nothing matched labels "pool=blue"',
        '  NODE  STATE                FOR   MESSAGE',
        '  c1    upgraded, verifying  20 s',
        '  c2    next',
        '  waits   2 controllers queued (1 at a time) (59 s)',
        THEIRS('c1'),
      ],
    ],
    [
      'the last controller: what comes next is workers',
      { plans: [running(recorded({ c1: 'SignalSent' }), WORKERS)], controllers: [signalled(C1)] },
      [
        'Plan autopilot (id1)  running 0/4 for 59 s  to v1.36.3+k0s.2',
        '  controllers  0/1  ◐',
        '  workers      0/3  ○○○',
        '  NODE  STATE      FOR   MESSAGE',
        '  c1    signalled  59 s  its agent has not answered yet',
        '  w1    next',
        '  w2    next',
        '  waits   3 workers wait until the controllers are done (59 s)',
      ],
    ],
    [
      'an intent that a gate holds, and a worker that is not Ready',
      {
        plans: [
          running(
            CONTROLLERS_DONE,
            recorded({ w1: 'SignalCompleted', w2: 'SignalPending', w3: 'SignalSent' }),
          ),
        ],
        workers: [W1, NOT_READY, buildNode('w3', {}, 'False')],
      },
      [
        'Plan autopilot (id1)  running 4/6 for 1 min, 66 %  to v1.36.3+k0s.2',
        '  controllers  3/3  ●●●',
        '  workers      1/3  ●○◐',
        '  NODE  STATE     FOR   MESSAGE',
        '  w3    starting  59 s  node w3 is not Ready (NodeNotReady)',
        '  w2    next',
        '  waits   node w2 is not Ready (NodeNotReady, 59 s)',
        '  ends    when the node is Ready',
      ],
    ],
    [
      'a worker that is not Ready, while those that were let past it fill the slots',
      {
        controllers: [],
        plans: [running([], recorded({ w1: 'SignalPending', w2: 'SignalSent', w3: 'SignalSent' }))],
        workers: [buildNode('w1', {}, 'False'), signalled(W2), signalled(W3)],
      },
      [
        'Plan autopilot (id1)  running 0/3 for 59 s  to v1.36.3+k0s.2',
        '  workers  0/3  ○◐◐',
        '  NODE  STATE      FOR   MESSAGE',
        '  w2    signalled  59 s  its agent has not answered yet',
        '  w3    signalled  59 s  its agent has not answered yet',
        '  w1    next',
        '  waits   1 worker queued (2 at a time) (59 s)',
        '          node w1 is not Ready (NodeNotReady, 59 s)',
        '  ends    when the node is Ready',
      ],
    ],
    [
      'a failure while others finish',
      {
        controllers: [],
        plans: [
          running(
            [],
            recorded({ w1: 'SignalApplyFailed', w2: 'SignalSent', w3: 'SignalPending' }),
            'w1: FailedDownload: 404',
          ),
        ],
        workers: [
          signalled(W1, at('FailedDownload'), report({ reason: '404' })),
          signalled(W2),
          W3,
        ],
      },
      [
        'Plan autopilot (id1)  running 0/3 for 59 s  to v1.36.3+k0s.2',
        '  workers  0/3  ✗◐○',
        '  NODE  STATE      FOR   MESSAGE',
        '  w1    failed     20 s  FailedDownload: 404',
        '  w2    signalled  59 s  its agent has not answered yet',
        '  waits   nothing new starts: w1 failed; 1 node failed (w1), more than failureBudget 0 (the default, since no UpgradePolicy applies) allows (FinishingInFlight, 59 s)',
        '  ends    when the nodes in progress have finished; then the plan ends, unless the failed node is tried again (run refit retry NODE), or failureBudget is 1 or more while the plan runs',
        '  to do   Failed. Fix the cause (the node, or the version, url or sha256 in the Plan), then run: refit retry w1. If the release is bad: run refit abort, and refit upgrade VERSION once the Plan has ended.',
      ],
    ],
    [
      'a worker that joined after the plan began, and is not included',
      {
        controllers: [],
        plans: [running([], recorded({ w1: 'SignalSent', w2: 'SignalPending' }))],
        workers: [signalled(W1), W2, W3],
      },
      [
        'Plan autopilot (id1)  running 0/2 for 59 s  to v1.36.3+k0s.2',
        '  workers  0/2  ◐○',
        '  NODE  STATE      FOR   MESSAGE',
        '  w1    signalled  59 s  its agent has not answered yet',
        '  w2    next',
        '  joined  w3 joined after the plan began and is not included: a plan keeps the nodes that it started with, unless newNodes of its policy is Include; apply the plan again once it has ended',
      ],
    ],
    [
      'a controller that leads no more',
      {
        workers: [],
        plans: [running(recorded({ c1: 'SignalSent' }), [])],
        controllers: [signalled(C1)],
        leader: { state: 'silent', holder: 'a', since: later(-MINUTE) },
      },
      [
        'No renewal by leader a for 2 min: no new node starts until a refit controller runs.',
        'Plan autopilot (id1)  running 0/1 for 59 s  to v1.36.3+k0s.2',
        '  controllers  0/1  ◐',
        '  workers      0/0  nothing matched labels "pool=blue"',
        '  NODE  STATE      FOR   MESSAGE',
        '  c1    signalled  59 s  its agent has not answered yet',
      ],
    ],
  ])('%s', async (_name, situation, lines) => {
    expect(await textOf(situation)).toEqual(lines);
  });

  test('a Plan with two commands shows both versions and whose controllers come first', async () => {
    const update = buildUpdate({ targets: { controllers: listed('c1') } });
    const commands = [
      { k0supdate: update },
      { k0supdate: { ...update, version: 'v1.37.0+k0s.0' } },
    ];
    expect(await textOf({ plans: [buildPlan({ commands })] })).toEqual([
      'Plan autopilot (id1)  new 0/2 for 1 min  to v1.36.3+k0s.2, then v1.37.0+k0s.0',
      '  controllers of spec.commands[0]  0/1  ○',
      '  controllers of spec.commands[1]  0/1  ○',
      '  NODE  STATE  FOR  MESSAGE',
      '  c1    next',
      '  waits   1 controller of spec.commands[1] waits until the controllers of spec.commands[0] are done (1 min)',
    ]);
  });
});
