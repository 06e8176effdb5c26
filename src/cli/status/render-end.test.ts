/** Tests what `refit status` says at the end of a plan, and how it looks on a terminal. */
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
import type { Node } from '../../kube/resources.ts';
import type { LeaderView } from './load.ts';

/** Returns a plan that lists these controllers and workers as targets. */
function planOf(controllers: string[], workers: string[], status: Plan['status']): Plan {
  const targets = { controllers: listed(...controllers), workers: listed(...workers) };
  return buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] }, status);
}

describe('status at the end of a plan', () => {
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

  test('shows that all nodes are done', async () => {
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

  test("takes the time from the nodes if k0s's own leader recorded no end", async () => {
    const status = statusOf('Completed', recorded({ c1: 'SignalCompleted' }), []);
    const c1 = signalled(C1, {
      created: later(1000),
      status: 'Completed',
      timestamp: later(45_000),
    });
    const [header] = await textOf({ plans: [planOf(['c1'], [], status)], controllers: [c1] });
    expect(header).toBe('Plan autopilot (id1)  done 1/1 after 44 s, 15 s ago  to v1.36.3+k0s.2');
  });

  test('names the leader of k0s if it does not know a rule, and what Refit would do', async () => {
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
      "Led by k0s's own leader for 1 min: it ignores policies, controls and version rules. The output below shows what Refit would do.",
    );
    expect(lines).toContain(
      '  waits   Refit starts nothing new: w2 would go from v1.37.0+k0s down to v1.36.3+k0s.2 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it) (FinishingInFlight, 59 s)',
    );
  });

  test('says in the words of the leader what it cannot decide', async () => {
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
      '  unknown the leader cannot decide (CannotDecide): could not check who drains w1: 403',
    );
  });

  test('proposes no retry of a failed node that runs the version all the same', async () => {
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

  test('shows every failure with its reason and what became of the node', async () => {
    expect(await textOf({ plans: [buildPlan({}, failed)], workers: failedWorkers })).toEqual([
      'Plan autopilot (id1)  failed 0/3 after 39 s, 20 s ago  to v1.36.3+k0s.2',
      '  workers  0/3  ✗✗✗',
      `       0 s ${'─'.repeat(57)} 39 s`,
      `  ✗ w1 ${'■'.repeat(66)}  39 s`,
      `  ✗ w2 ${'■'.repeat(66)}  39 s`,
      '       ■=at work',
      '  NODE  STATE              FOR   MESSAGE',
      '  w1    failed             20 s  FailedDownload: 404',
      '  w2    failed             20 s  no socket after 90 s (its previous version runs again)',
      '  w3    failed at Restart  59 s  the reason is not recorded; Events may have it: kubectl get events -A --field-selector involvedObject.name=w3',
      THEIRS('w3'),
      '  to do   Failed. Fix the cause (the node, or the version, url or sha256 in the Plan), then run for each of w1, w2, w3: refit retry NODE. If the release is bad: run refit upgrade VERSION, which replaces this Plan.',
    ]);
  });

  test('names a missed deadline once, in the words of the engine', async () => {
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

  test('has one line for each target in its wide form', async () => {
    const lines = await textOf({ plans: [buildPlan({}, failed)], workers: failedWorkers }, 'wide');
    expect(lines.slice(2, 6)).toEqual([
      '  NODE  STATE              FOR   ROLE    FROM           TO             AGENT      MESSAGE',
      '  w1    failed             20 s  worker  -              v1.36.3+k0s.2  unknown    FailedDownload: 404',
      '  w2    failed             20 s  worker  v1.35.5+k0s.0  v1.36.3+k0s.2  unknown    no socket after 90 s (its previous version runs again)',
      "  w3    failed at Restart  59 s  worker  -              v1.36.3+k0s.2  k0s's own",
    ]);
  });

  test('shows in its wide form the version that runs on a target that has not started', async () => {
    const node = { ...buildNode('w1'), status: { nodeInfo: { kubeletVersion: 'v1.36.2+k0s' } } };
    const plans = [running([], recorded({ w1: 'SignalPending' }))];
    const lines = await textOf({ plans, workers: [node] }, 'wide');
    expect(lines.find((line) => line.startsWith('  w1 '))).toMatch(
      /^ {2}w1 +pending .* worker +v1\.36\.2\+k0s +v1\.36\.3\+k0s\.2 /,
    );
  });
});

describe('status on a terminal', () => {
  const terminal = { hasColours: true, size: () => ({ columns: 60, rows: 24 }) };
  const escapes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g');

  test('breaks long sentences below their beginning', async () => {
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

  test('has the same text with and without colours', async () => {
    const situation = {
      plans: [running(FIRST, WORKERS)],
      controllers: [signalled(C1, at('Restart')), C2, C3],
    };
    const painted = await textOf(situation, 'text', terminal);
    expect(painted.map((line) => line.replaceAll(escapes, ''))).toEqual(
      await textOf(situation, 'text', { ...terminal, hasColours: false }),
    );
    const start =
      '\u001B[1mPlan autopilot (id1)\u001B[22m  \u001B[36mrunning 0/6\u001B[39m for 59 s';
    expect(painted[0]?.slice(0, start.length)).toBe(start);
  });
});
