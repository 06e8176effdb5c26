/** Tests how time affects the evaluation of a target: deadlines, an absent leader, and old intents. */

import { describe, expect, test } from 'vitest';
import type { Decision } from '../../../test/support/builders/decisions.ts';
import { decide } from '../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import {
  failed,
  NONE,
  sent,
  succeeded,
  working,
} from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { RecordedState, Role } from '../model/rollout.ts';
import type { EndpointHealth } from '../model/snapshot.ts';

const POLICY = buildPolicy();
const DOWN: EndpointHealth[] = [{ name: 'c2', ready: false, detail: '/readyz says 500' }];

interface Situation {
  readonly role?: Role;
  readonly state: RecordedState;
  /** The time of the recorded state, in RFC 3339 format. */
  readonly since?: string;
  readonly facts: Partial<TargetFacts>;
  /** The time of the decision, in milliseconds after T0. */
  readonly now: number;
  readonly controlPlane?: readonly EndpointHealth[] | 'unasked';
  readonly targetDeadlineMs?: number;
}

function decisionOn(situation: Situation): Decision {
  const {
    role = 'worker',
    state,
    since = later(0),
    facts,
    now,
    controlPlane,
    targetDeadlineMs,
  } = situation;
  const stage = buildStage(role, [buildTarget('n1', state, { since })]);
  const snapshot = buildSnapshot(buildRollout([stage]), { n1: facts }, controlPlane);
  return decide(
    snapshot,
    targetDeadlineMs === undefined ? POLICY : { ...POLICY, targetDeadlineMs },
    T0 + now,
  );
}

/** Returns what the decision records for the target, and what it does with the target. */
function stepOf(situation: Situation): object {
  const { record, signals, waits, probes, recheckAfterMs } = decisionOn(situation);
  const target = record?.stages[0]?.targets[0];
  return {
    ...(target ? { recorded: target.state, since: target.since } : {}),
    ...(record?.reason ? { reason: record.reason.code } : {}),
    ...(signals.length > 0 ? { signalled: signals[0]?.target.since } : {}),
    ...(waits.length > 0
      ? { waits: waits.map(({ gate, reason }) => `${gate}: ${reason.code}`).join() }
      : {}),
    ...(waits[0]?.until === undefined ? {} : { until: waits[0].until }),
    ...(probes.length > 0 ? { wantsHealth: true } : {}),
    ...(recheckAfterMs === undefined ? {} : { recheckAfterMs }),
  };
}

const check = (rows: [string, Situation, object][]): void => {
  test.each(rows)('%s', (_name, situation, step) => expect(stepOf(situation)).toEqual(step));
};

const end = later(2 * HOUR);
/** The facts of a leader that has watched the target from the start. */
const WATCHED = { watchedMs: 2 * HOUR };

describe('the deadline of a target in flight', () => {
  const atWork = {
    state: 'intended',
    facts: { observation: working('Restart', later(0), later(MINUTE)) },
  } as const;
  check([
    [
      'one moment before it: waits, and is looked at again when it is over',
      { ...atWork, now: 2 * HOUR - 1 },
      { waits: 'working: InFlight', until: end, recheckAfterMs: 1 },
    ],
    [
      'a node that is in progress when its deadline passes has failed',
      { ...atWork, facts: { ...atWork.facts, ...WATCHED }, now: 2 * HOUR },
      { recorded: 'failed', since: end, reason: 'DeadlineExceeded' },
    ],
    [
      'at work when it comes, and somebody only looks: waits for the leader to say so',
      { ...atWork, now: 2 * HOUR },
      { waits: 'working: InFlight', until: end },
    ],
    [
      'a node whose agent has not answered the signal when the deadline passes has failed',
      { state: 'intended', facts: { observation: sent(), ...WATCHED }, now: 2 * HOUR },
      { recorded: 'failed', since: end, reason: 'DeadlineExceeded' },
    ],
    [
      'reported failure when it comes: that failure is the reason',
      { state: 'intended', facts: { observation: failed('404') }, now: 3 * HOUR },
      { recorded: 'failed', since: later(3 * HOUR), reason: 'TargetFailed' },
    ],
    [
      'reported success and verified, whenever it is seen: done',
      { state: 'intended', facts: { observation: succeeded() }, now: 30 * HOUR },
      { recorded: 'done', since: later(30 * HOUR) },
    ],
    [
      'reported success, but is not Ready when it comes: failed for that reason',
      {
        state: 'intended',
        facts: { observation: succeeded(), ready: false, ...WATCHED },
        now: 2 * HOUR,
      },
      { recorded: 'failed', since: end, reason: 'NodeNotReady' },
    ],
    [
      'a controller fails if an API server is not ready at its deadline, and the reason says so',
      {
        role: 'controller',
        state: 'intended',
        facts: { observation: succeeded(), ...WATCHED },
        now: 2 * HOUR,
        controlPlane: DOWN,
      },
      { recorded: 'failed', since: end, reason: 'ControlPlaneNotReady' },
    ],
    [
      'a controller before anybody asked the API servers: they are asked first, however late it is',
      {
        role: 'controller',
        state: 'intended',
        facts: { observation: succeeded(), ...WATCHED },
        now: 3 * HOUR,
        controlPlane: 'unasked',
      },
      {
        waits: 'api-servers-ready: ControlPlaneUnknown',
        until: later(HOUR + 10 * MINUTE),
        wantsHealth: true,
      },
    ],
    [
      'there is none: waits for ever',
      {
        ...atWork,
        facts: { ...atWork.facts, ...WATCHED },
        now: 1000 * HOUR,
        targetDeadlineMs: Number.POSITIVE_INFINITY,
      },
      { waits: 'working: InFlight' },
    ],
    [
      'a time that does not parse: waits for ever, rather than failing for a clerical error',
      { ...atWork, since: 'soon', now: 1000 * HOUR },
      { waits: 'working: InFlight' },
    ],
  ]);
});

describe('an intent that was not signalled', () => {
  const unsignalled = { state: 'intended', facts: { observation: NONE } } as const;
  const old = later(3 * HOUR);
  check([
    [
      'is signalled under its own name',
      { ...unsignalled, now: 59_000 },
      { signalled: later(0), waits: 'intended: Intended' },
    ],
    [
      'gets a new name after a minute, so that its deadline begins when its agent can begin',
      { ...unsignalled, now: MINUTE },
      { recorded: 'intended', since: later(MINUTE), waits: 'intended: Intended' },
    ],
    [
      'never fails for the time in which there was no leader',
      { ...unsignalled, now: 3 * HOUR },
      { recorded: 'intended', since: old, waits: 'intended: Intended' },
    ],
    [
      'gets a new name within a short deadline too',
      { ...unsignalled, now: 10_000, targetDeadlineMs: 10_000 },
      { recorded: 'intended', since: later(10_000), waits: 'intended: Intended' },
    ],
    [
      'of a clock that runs ahead is not old',
      { ...unsignalled, since: old, now: MINUTE },
      { signalled: old, waits: 'intended: Intended' },
    ],
    [
      'asks the gates again: the node is not Ready any more',
      { state: 'intended', facts: { ready: false }, now: 3 * HOUR },
      { waits: 'node-ready: NodeNotReady' },
    ],
    [
      'asks the gates again: an API server went down while there was no leader',
      { ...unsignalled, role: 'controller', now: 1000, controlPlane: DOWN },
      { waits: 'api-servers-ready: ControlPlaneNotReady', recheckAfterMs: 1000 },
    ],
    [
      'asks the gates again: nobody knows yet',
      { ...unsignalled, role: 'controller', now: 1000, controlPlane: 'unasked' },
      { waits: 'api-servers-ready: ControlPlaneUnknown', wantsHealth: true },
    ],
    [
      'has no payload any more: nothing was touched, and it is recorded so',
      { state: 'intended', facts: { platform: 'linux-arm64' }, now: 1000 },
      { recorded: 'unsupported', since: later(1000), reason: 'PlatformUnsupported' },
    ],
    [
      'has no object any more',
      { state: 'intended', facts: { exists: false }, now: 1000 },
      { recorded: 'failed', since: later(1000), reason: 'TargetGone' },
    ],
  ]);
});

describe('a pending target that an earlier leader signalled but could not record', () => {
  const now = 5 * HOUR;
  const recent = later(5 * HOUR - MINUTE);
  const ancient = later(MINUTE);
  check([
    [
      'is in flight, however long it waited before',
      { state: 'pending', facts: { observation: sent(recent) }, now },
      {
        recorded: 'intended',
        since: recent,
        waits: 'signalled: Signalled',
        until: later(7 * HOUR - MINUTE),
        recheckAfterMs: 2 * HOUR - MINUTE,
      },
    ],
    [
      'is at work, however long it waited before',
      { state: 'pending', facts: { observation: working('Restart', recent) }, now },
      {
        recorded: 'intended',
        since: recent,
        waits: 'working: InFlight',
        until: later(7 * HOUR - MINUTE),
        recheckAfterMs: 2 * HOUR - MINUTE,
      },
    ],
    [
      'has failed where that signal is older than the deadline: nobody signals it again on top',
      { state: 'pending', facts: { observation: working('Restart', ancient), ...WATCHED }, now },
      { recorded: 'failed', since: later(now), reason: 'DeadlineExceeded' },
    ],
  ]);
});

test('a resting target is healthy, however late, and is checked again after its rest', () => {
  const stage = {
    ...buildStage('worker', [buildTarget('n1', 'intended', { since: later(0) })]),
    restMs: 3 * HOUR,
  };
  const facts = { n1: { observation: succeeded(later(0), later(0)) } };
  const at = (now: number): Decision =>
    decide(buildSnapshot(buildRollout([stage]), facts), POLICY, T0 + now);
  const { waits, record, recheckAfterMs } = at(2.5 * HOUR);
  expect([waits[0]?.reason.message, waits[0]?.until, record, recheckAfterMs]).toEqual([
    'n1 keeps its slot for 3 h after its success',
    later(3 * HOUR),
    undefined,
    0.5 * HOUR,
  ]);
  expect(at(3 * HOUR).record?.phase).toBe('done');
});

test('nodes whose intents are not sent do not wait for each other where maxUnavailable has room for one of them', () => {
  const stage = buildStage(
    'worker',
    [buildTarget('w1', 'intended'), buildTarget('w2', 'intended')],
    {
      maxInFlight: 2,
    },
  );
  const fleet = [
    ...['w1', 'w2', 'w3'].map((name) => buildNode(name)),
    buildNode('down', {}, 'False'),
  ];
  const snapshot = withParts(buildSnapshot(buildRollout([stage])), { cluster: { fleet } });
  const { signals, waits } = decide(
    snapshot,
    { ...POLICY, name: 'careful', maxUnavailable: { nodes: 2 } },
    T0,
  );
  expect(signals.map(({ target }) => target.name)).toEqual(['w1']);
  const why =
    '2 of 4 nodes are not Ready, unschedulable or at work (down, w1); UpgradePolicy careful allows 2';
  expect(waits.find(({ target }) => target === 'w2')?.reason.message).toBe(why);
});
