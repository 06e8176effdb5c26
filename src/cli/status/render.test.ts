/** Shows what people read of a plan in each situation: through the real dialect and the real decision, to the letter. */
import { describe, expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import {
  buildViewParts,
  lookAt,
  READY,
  recorded,
  signalled,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import { CONDITIONS_ANNOTATION } from '../../engine/model/written-conditions.ts';
import type { Node } from '../../kube/resources.ts';
import { encodeReport } from '../../signal/annotations.ts';
import type { ControlNode } from '../../signal/names.ts';
import type { AskControlPlane } from './inspection-sources.ts';
import type { LeaderView } from './load.ts';
import { render } from './render.ts';

const THEIRS = (names: string): string =>
  `  agents  k0s's own on ${names}: no roll-back, no resumed download, no proof that the node is Ready`;
const PIPE = {
  hasColours: false,
  size: () => ({ columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY }),
};
const LED: LeaderView = { state: 'held', holder: 'a', since: later(0) };
const [C1, C2, C3] = ['c1', 'c2', 'c3'].map((name) => buildControlNode(name)) as [
  ControlNode,
  ControlNode,
  ControlNode,
];
const [W1, W2, W3] = ['w1', 'w2', 'w3'].map((name) =>
  buildNode(name, { labels: { pool: 'blue' } }),
) as [Node, Node, Node];
const NOT_READY = buildNode('w2', { labels: { pool: 'blue' } }, 'False');

const PENDING = recorded({ c1: 'SignalPending', c2: 'SignalPending', c3: 'SignalPending' });
const FIRST = recorded({ c1: 'SignalSent', c2: 'SignalPending', c3: 'SignalPending' });
const CONTROLLERS_DONE = recorded({
  c1: 'SignalCompleted',
  c2: 'SignalCompleted',
  c3: 'SignalCompleted',
});
const WORKERS = recorded({ w1: 'SignalPending', w2: 'SignalPending', w3: 'SignalPending' });

const running = (
  ...targets: [controllers: typeof PENDING, workers: typeof WORKERS, why?: string]
): Plan => buildPlan({}, statusOf('SchedulableWait', ...targets));
/** The leader has found an API server that is not ready. */
const held = (plan: Plan, message: string): Plan => {
  const blocked = { type: 'Blocked', status: 'True', reason: 'ControlPlaneNotReady', message };
  const annotations = { [CONDITIONS_ANNOTATION]: JSON.stringify([blocked]) };
  return { ...plan, metadata: { ...plan.metadata, annotations } };
};
const report = (more: object): Record<string, string> =>
  encodeReport({ created: later(1000), ...more });
const at = (status: string): object => ({ status, timestamp: later(40_000) });

interface Situation {
  readonly plans?: readonly Plan[];
  readonly controllers?: readonly ControlNode[];
  readonly workers?: readonly Node[];
  readonly leader?: LeaderView;
  readonly ask?: AskControlPlane;
}

/** One minute after the beginning. */
async function textOf(
  situation: Situation,
  form: 'text' | 'wide' = 'text',
  look = PIPE,
): Promise<string[]> {
  const {
    plans = [],
    controllers = [C1, C2, C3],
    workers = [W1, W2, W3],
    leader = LED,
    ask = READY,
  } = situation;
  const views = await lookAt(
    plans,
    controllers,
    workers,
    T0 + MINUTE,
    buildViewParts({ controlPlane: ask }),
  );
  return render({ leader, plans: views }, form, T0 + MINUTE, look)
    .trimEnd()
    .split('\n');
}

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
        '  to do   This plan will be refused as it stands. Correct the field that the message names.',
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
              'controller c1 does not exist',
            ),
          ),
        ],
        leader: { state: 'none' },
      },
      [
        'Plan autopilot (id1)  incomplete 0/2 after 1 s, 59 s ago  to v1.36.3+k0s.2',
        '  controllers  0/2  ✗○',
        '  workers      0/0  nothing matched labels "pool=blue"',
        '  why     controller c1 does not exist',
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
        'Plan autopilot (id1)  running 0/6 for 1 min  to v1.36.3+k0s.2',
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
        plans: [running(FIRST, [])],
        controllers: [signalled(C1, at('Completed')), C2, C3],
        ask: async () => await Promise.resolve([{ name: 'c2', ready: false, detail: 'no answer' }]),
      },
      [
        'Plan autopilot (id1)  running 0/3 for 1 min  to v1.36.3+k0s.2',
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
        plans: [
          held(
            running(FIRST, []),
            'the API server of c2 (/readyz says 500), c3 (no answer) is not ready',
          ),
        ],
        controllers: [signalled(C1, at('Completed')), C2, C3],
      },
      [
        'Plan autopilot (id1)  running 0/3 for 1 min  to v1.36.3+k0s.2',
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
      { plans: [running(FIRST, [])], controllers: [signalled(C1, at('Completed')), C2, C3] },
      [
        'Plan autopilot (id1)  running 0/3 for 1 min  to v1.36.3+k0s.2',
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
        'Plan autopilot (id1)  running 0/4 for 1 min  to v1.36.3+k0s.2',
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
        plans: [running([], recorded({ w1: 'SignalPending', w2: 'SignalSent', w3: 'SignalSent' }))],
        workers: [buildNode('w1', {}, 'False'), signalled(W2), signalled(W3)],
      },
      [
        'Plan autopilot (id1)  running 0/3 for 1 min  to v1.36.3+k0s.2',
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
        'Plan autopilot (id1)  running 0/3 for 1 min  to v1.36.3+k0s.2',
        '  workers  0/3  ✗◐○',
        '  NODE  STATE      FOR   MESSAGE',
        '  w1    failed     20 s  FailedDownload: 404',
        '  w2    signalled  59 s  its agent has not answered yet',
        '  waits   nothing new starts: w1 failed; 1 node failed (w1), more than failureBudget 0 (the default, since no UpgradePolicy applies) allows (FinishingInFlight, 59 s)',
        '  ends    when the nodes in progress have ended; the plan ends then, unless the failed node is tried again (refit retry NODE), or failureBudget is 1 or more while the plan runs',
        '  to do   Failed. Fix the cause (node, or url/sha256 in the Plan), then run: refit retry w1',
      ],
    ],
    [
      'a controller that leads no more',
      {
        plans: [running(recorded({ c1: 'SignalSent' }), [])],
        controllers: [signalled(C1)],
        leader: { state: 'silent', holder: 'a', since: later(-MINUTE) },
      },
      [
        'No renewal by leader a for 2 min: no new node starts until a refit controller runs.',
        'Plan autopilot (id1)  running 0/1 for 1 min  to v1.36.3+k0s.2',
        '  controllers  0/1  ◐',
        '  workers      0/0  nothing matched labels "pool=blue"',
        '  NODE  STATE      FOR   MESSAGE',
        '  c1    signalled  59 s  its agent has not answered yet',
      ],
    ],
  ])('%s', async (_name, situation, lines) => {
    expect(await textOf(situation)).toEqual(lines);
  });

  test('two commands: which controllers, and both versions', async () => {
    const update = buildUpdate({ targets: { controllers: listed('c1') } });
    const commands = [
      { k0supdate: update },
      { k0supdate: { ...update, version: 'v1.37.0+k0s.0' } },
    ];
    expect(await textOf({ plans: [buildPlan({ commands })] })).toEqual([
      'Plan autopilot (id1)  new 0/2 for 1 min  to v1.36.3+k0s.2, then v1.37.0+k0s.0',
      '  controllers of command 0  0/1  ○',
      '  controllers of command 1  0/1  ○',
      '  NODE  STATE  FOR  MESSAGE',
      '  c1    next',
      '  waits   1 controller of command 1 waits until the controllers of command 0 are done (1 min)',
    ]);
  });
});

/** Lists these targets. */
function planOf(controllers: string[], workers: string[], status: Plan['status']): Plan {
  const targets = { controllers: listed(...controllers), workers: listed(...workers) };
  return buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] }, status);
}

describe('at the end', () => {
  const failedWorkers = [
    signalled(W1, at('FailedDownload'), report({ reason: '404' })),
    signalled(
      W2,
      at('Failed'),
      report({ reason: 'no socket after 90 s', rolledBack: true, from: 'v1.35.5+k0s.0' }),
    ),
    signalled(W3, at('Restart')),
  ];
  const failed = statusOf(
    'ApplyFailed',
    [],
    recorded({ w1: 'SignalApplyFailed', w2: 'SignalApplyFailed', w3: 'SignalApplyFailed' }),
    'w1: FailedDownload: 404',
  );

  test('all is done', async () => {
    const status = statusOf(
      'Completed',
      recorded({ c1: 'SignalCompleted' }),
      recorded({ w1: 'SignalCompleted' }, later(30_000)),
    );
    expect(
      await textOf({ plans: [planOf(['c1'], ['w1'], status)], leader: { state: 'none' } }),
    ).toEqual([
      'Plan autopilot (id1)  done 2/2 after 30 s, 30 s ago  to v1.36.3+k0s.2',
      '  controllers  1/1  ●',
      '  workers      1/1  ●',
    ]);
  });

  test("k0s's own leader records no end: the nodes tell when it was", async () => {
    const status = statusOf('Completed', recorded({ c1: 'SignalCompleted' }), []);
    const c1 = signalled(C1, {
      created: later(1000),
      status: 'Completed',
      timestamp: later(45_000),
    });
    const [header] = await textOf({ plans: [planOf(['c1'], [], status)], controllers: [c1] });
    expect(header).toBe('Plan autopilot (id1)  done 1/1 after 45 s, 15 s ago  to v1.36.3+k0s.2');
  });

  test("a rule that k0s's own leader does not know: who leads, and what Refit would do", async () => {
    const newer = { ...W2, status: { ...W2.status, nodeInfo: { kubeletVersion: 'v1.37.0+k0s' } } };
    const status = statusOf(
      'SchedulableWait',
      [],
      recorded({ w1: 'SignalSent', w2: 'SignalPending' }),
    );
    const w1 = signalled(buildNode('w1'), at('Downloading'));
    const leader: LeaderView = {
      state: 'held',
      holder: '0123456789abcdef0123456789abcdef',
      since: later(0),
    };
    const lines = await textOf({ plans: [buildPlan({}, status)], workers: [w1, newer], leader });
    expect(lines[0]).toBe(
      "Led by k0s's own leader for 1 min: it starts nodes whatever policies, controls and version rules say. What follows is what Refit would do.",
    );
    expect(lines).toContain(
      '  waits   Refit starts nothing new: w2 would go from v1.37.0+k0s down to v1.36.3+k0s.2 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy lifts it) (FinishingInFlight, 59 s)',
    );
  });

  test('what the leader cannot decide, by its own word', async () => {
    const blocked = [
      {
        type: 'Blocked',
        status: 'True',
        reason: 'CannotDecide',
        message: 'could not check who drains w1: 403',
      },
    ];
    const bare = running(FIRST, []);
    const annotations = { [CONDITIONS_ANNOTATION]: JSON.stringify(blocked) };
    const plans = [{ ...bare, metadata: { ...bare.metadata, annotations } }];
    expect(await textOf({ plans, controllers: [C1, C2, C3] })).toContain(
      '  unknown the leader lacks an answer (CannotDecide): could not check who drains w1: 403',
    );
  });

  test('a failed node that runs the version all the same needs no retry', async () => {
    const there = (name: string): Node => {
      const node = signalled(
        buildNode(name),
        at('Failed'),
        report({ reason: 'another agent was faster' }),
      );
      return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion: 'v1.36.3+k0s.2' } } };
    };
    const status = statusOf(
      'ApplyFailed',
      [],
      recorded({ w1: 'SignalApplyFailed', w2: 'SignalPending' }),
    );
    const toDo = async (...states: string[]): Promise<string | undefined> => {
      const [first = '', second] = states;
      const workers = recorded({ w1: first, ...(second === undefined ? {} : { w2: second }) });
      const plans = [buildPlan({}, { ...status, ...statusOf('ApplyFailed', [], workers) })];
      const others = second === 'SignalApplyFailed' ? there('w2') : W2;
      return (await textOf({ plans, workers: [there('w1'), others] })).find((line) =>
        line.startsWith('  to do'),
      );
    };
    expect(await toDo('SignalApplyFailed')).toBe(
      '  to do   Nothing to fix: w1 runs the version now.',
    );
    expect(await toDo('SignalApplyFailed', 'SignalApplyFailed')).toBe(
      '  to do   Nothing to fix: w1, w2 run the version now.',
    );
    expect(await toDo('SignalApplyFailed', 'SignalPending')).toBe(
      '  to do   Nothing to fix: w1 runs the version now. For the other nodes: delete the Plan and apply it again.',
    );
  });

  test('every failure with its reason, and what became of the node', async () => {
    expect(await textOf({ plans: [buildPlan({}, failed)], workers: failedWorkers })).toEqual([
      'Plan autopilot (id1)  failed 0/3 after 40 s, 20 s ago  to v1.36.3+k0s.2',
      '  workers  0/3  ✗✗✗',
      `       0 s ${'─'.repeat(57)} 39 s`,
      `  ✗ w1 ${'■'.repeat(66)}  39 s`,
      `  ✗ w2 ${'■'.repeat(66)}  39 s`,
      '       ■=at work',
      '  NODE  STATE              FOR   MESSAGE',
      '  w1    failed             20 s  FailedDownload: 404',
      '  w2    failed             20 s  Failed: no socket after 90 s (its previous version runs again)',
      "  w3    failed at Restart  59 s  Events and the leader's log say why: kubectl get events -A --field-selector involvedObject.name=w3",
      THEIRS('w3'),
      '  to do   Failed. Fix the cause (node, or url/sha256 in the Plan), then run for each of w1, w2, w3: refit retry NODE',
    ]);
  });

  test('a deadline: said once, in the words of the engine', async () => {
    const why = 'w3 did not report within its deadline at Restart';
    const status = statusOf('ApplyFailed', [], recorded({ w3: 'SignalApplyFailed' }), why);
    const lines = await textOf({ plans: [buildPlan({}, status)], workers: failedWorkers });
    expect(lines.slice(1, 4)).toEqual([
      '  workers  0/1  ✗',
      '  NODE  STATE              FOR   MESSAGE',
      '  w3    failed at Restart  59 s  did not report within its deadline at Restart',
    ]);
    expect(lines.filter((line) => line.includes('deadline'))).toHaveLength(1);
  });

  test('wide: one line for each target', async () => {
    const lines = await textOf({ plans: [buildPlan({}, failed)], workers: failedWorkers }, 'wide');
    expect(lines.slice(2, 6)).toEqual([
      '  NODE  STATE              FOR   ROLE    FROM           TO             AGENT      MESSAGE',
      '  w1    failed             20 s  worker  -              v1.36.3+k0s.2  unknown    FailedDownload: 404',
      '  w2    failed             20 s  worker  v1.35.5+k0s.0  v1.36.3+k0s.2  unknown    Failed: no socket after 90 s (its previous version runs again)',
      "  w3    failed at Restart  59 s  worker  -              v1.36.3+k0s.2  k0s's own",
    ]);
  });
});

describe('on a terminal', () => {
  const terminal = { hasColours: true, size: () => ({ columns: 60, rows: 24 }) };
  const escapes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g');

  test('long sentences are broken below themselves', async () => {
    const situation = {
      plans: [running(recorded({ w1: 'SignalPending' }), [])],
      leader: { state: 'silent', holder: 'a', since: later(-MINUTE) },
    } as const;
    const plain = await textOf(situation, 'text', { ...terminal, hasColours: false });
    expect(plain.slice(0, 2)).toEqual([
      'No renewal by leader a for 2 min: no new node starts until a',
      '  refit controller runs.',
    ]);
  });

  test('colours change nothing but colours', async () => {
    const situation = {
      plans: [running(FIRST, WORKERS)],
      controllers: [signalled(C1, at('Restart')), C2, C3],
    };
    const painted = await textOf(situation, 'text', terminal);
    expect(painted.map((line) => line.replaceAll(escapes, ''))).toEqual(
      await textOf(situation, 'text', { ...terminal, hasColours: false }),
    );
    const start =
      '\u001B[1mPlan autopilot (id1)\u001B[22m  \u001B[36mrunning 0/6\u001B[39m for 1 min';
    expect(painted[0]?.slice(0, start.length)).toBe(start);
  });
});
