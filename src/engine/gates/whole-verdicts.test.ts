/** Tests whole verdicts of gates: besides the sentence, what ends a wait, when it is judged again, and what is asked. */
import { describe, expect, test } from 'vitest';
import { input } from '../../../test/support/builders/gate-inputs.ts';
import { buildHook } from '../../../test/support/builders/hooks.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import type { KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { answered, NEVER, UNASKED, unanswered } from '../model/asked.ts';
import type { RequiredDownload } from '../model/downloads.ts';
import type { NodeView, Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import { unlessAccepted } from './accepted-checks.ts';
import { componentsWork, componentsWorkAfter } from './components-work.ts';
import { drainPossible } from './drain-possible.ts';
import { untilEarlierVersionsAreRead } from './earlier-versions-read.ts';
import { healthy, healthyAfter } from './healthy.ts';
import { hooksPossible } from './hooks-possible.ts';
import { locksFree } from './locks-free.ts';
import { locksTaken } from './locks-taken.ts';
import { notHeld } from './not-held.ts';
import { payloadPresent } from './payload-present.ts';
import type { Verdict } from './types.ts';

const PASSED: Verdict = { kind: 'pass' };
const NO_ANSWER = { reason: because('CannotDecide', 'could not check: no route'), recheckMs: 7000 };
const NODE: NodeView = {
  name: 'n1',
  unschedulable: false,
  cordonOwner: undefined,
  taintOwner: undefined,
};

function waitOf(code: string, message: string, ends: string, more: object = {}): object {
  return { kind: 'wait', reason: { code, message }, ends, ...more };
}

describe('the hold of a node', () => {
  const COMMAND = 'somebody runs refit unhold n1';
  const at = (hold: KnownFacts['hold']) => notHeld.evaluate(input('worker', { hold }));

  test('without an end waits for a person', () => {
    expect(at({ by: 'ann', reason: 'disk', since: later(0) })).toEqual(
      waitOf('Held', 'n1 is held by ann: disk', COMMAND, { since: later(0) }),
    );
    expect(at({})).toEqual(waitOf('Held', 'n1 is held', COMMAND));
  });

  test('with an end is judged again at its end', () => {
    const until = later(MINUTE);
    expect(at({ until })).toEqual(
      waitOf('Held', 'n1 is held', `the hold ends at ${until}, or ${COMMAND}`, {
        until,
        recheckMs: MINUTE,
      }),
    );
    expect(at({ until: later(-MINUTE) })).toEqual(PASSED);
    expect(at(undefined)).toEqual(PASSED);
  });
});

describe('the locks of other tools', () => {
  const coordinated = withParts(input('worker'), {
    policy: buildPolicy({ coordinate: ['Kured'] }),
  });
  const having = (locks: Parameters<typeof locksFree.evaluate>[0]['outside']['locks']) =>
    withParts(coordinated, { outside: { locks } });
  const KURED = { tool: 'Kured', isOurs: false, others: [] } as const;
  const other = { tool: 'Kured', message: 'Kured reboots n2', ends: 'Kured is done' } as const;

  test('that were not read yet are waited for', () => {
    const [free, taken] = [locksFree, locksTaken].map((gate) => gate.evaluate(having([])));
    expect(free).toMatchObject({ isPassing: true, ends: 'the API server has answered' });
    expect(taken).toMatchObject({
      isPassing: true,
      keepsIntent: true,
      ends: 'Refit holds the lock',
    });
  });

  test('end with the other tool, or at their own end', () => {
    expect(locksFree.evaluate(having([{ ...KURED, others: [other] }]))).toEqual(
      waitOf('OtherToolAtWork', 'Kured reboots n2', 'Kured is done'),
    );
    const until = later(MINUTE);
    const ends = `Kured is done; the lock expires at ${until}`;
    const locks = [{ ...KURED, others: [{ ...other, until }] }];
    expect(locksFree.evaluate(having(locks))).toEqual(
      waitOf('OtherToolAtWork', 'Kured reboots n2', ends, { until, recheckMs: MINUTE }),
    );
    expect(locksFree.evaluate({ ...having(locks), now: T0 + HOUR })).toMatchObject({
      recheckMs: 0,
    });
  });

  test('of other tools than those of the policy do not count', () => {
    const foreign = { ...KURED, tool: 'ClusterAutoscaler', others: [other] } as const;
    expect(locksFree.evaluate(having([foreign, KURED]))).toEqual(PASSED);
    expect(
      locksTaken.evaluate(
        having([
          { ...foreign, problem: 'no' },
          { ...KURED, isOurs: true },
        ]),
      ),
    ).toEqual(PASSED);
  });
});

describe('the components of the control plane', () => {
  const ENDS =
    'the component renews its Lease; or somebody deletes the Lease, and Refit goes on without the component';
  type Components = Parameters<typeof componentsWork.evaluate>[0]['cluster']['components'];
  const at = (components: Components) =>
    componentsWork.evaluate(withParts(input('worker'), { cluster: { components } }));
  const stateOf = (state: 'working' | 'stopped' | 'unknown', renewedAt?: number) =>
    answered({
      states: [{ name: 'kube-scheduler', state, silentMs: MINUTE, renewedAt }],
    }) as Components;

  test('wait for the answer of the API server', () => {
    expect(at(NEVER)).toEqual(PASSED);
    expect(at(UNASKED)).toEqual(
      waitOf('ControlPlaneUnknown', 'the Leases of the components are being read', ENDS, {
        isPassing: true,
      }),
    );
    expect(at(unanswered(NO_ANSWER))).toMatchObject({ kind: 'wait', reason: NO_ANSWER.reason });
    expect(at(answered({ states: [], problem: 'no route' }) as Components)).toEqual(
      waitOf(
        'ControlPlaneUnknown',
        'the Leases of the components could not be read: no route',
        'an API server answers with the Leases',
        { isPassing: true, recheckMs: 2000 },
      ),
    );
    const forbidden = { states: [], problem: 'forbidden', isForbidden: true };
    expect(at(answered(forbidden) as Components)).toEqual(PASSED);
  });

  test('are judged again while one of them does not work', () => {
    expect(at(stateOf('stopped'))).toEqual(
      waitOf(
        'ComponentNotWorking',
        'kube-scheduler does not work: nobody has renewed its Lease kube-system/kube-scheduler for 1 min',
        ENDS,
        { recheckMs: 2000 },
      ),
    );
    expect(at(stateOf('unknown'))).toEqual(
      waitOf(
        'ComponentNotWorking',
        'it is not known yet whether kube-scheduler works: Refit waits until its Lease kube-system/kube-scheduler is renewed',
        ENDS,
        { recheckMs: 2000 },
      ),
    );
    expect(at(stateOf('working'))).toEqual(PASSED);
  });

  test.each([
    ['at the start of the watch', T0 - MINUTE, 'pass'],
    ['before the watch', T0 - MINUTE - 1, 'wait'],
    ['never', undefined, 'wait'],
  ])(
    'count after the upgrade of a controller only if they renewed their Lease %s',
    (_title, renewedAt, kind) => {
      const parts = { cluster: { components: stateOf('working', renewedAt) } };
      const given = withParts(input('controller', { watchedMs: MINUTE }), parts);
      expect(componentsWorkAfter.evaluate(given).kind).toBe(kind);
      const stopped = { cluster: { components: stateOf('stopped', renewedAt) } };
      expect(componentsWorkAfter.evaluate(withParts(given, stopped)).kind).toBe('wait');
      expect(componentsWorkAfter.evaluate(withParts(input('worker'), stopped))).toEqual(PASSED);
    },
  );
});

describe('health checks', () => {
  const checkOf = (forMs?: number) =>
    ({ kind: 'daemonSets', name: 'pods', pods: 'all', forMs }) as const;
  const policyOf = (forMs?: number, more = {}) =>
    buildPolicy({ name: 'careful', health: { checks: [checkOf(forMs)], ...more } });
  const result = {
    name: 'pods',
    state: 'passing',
    message: 'all work',
    since: T0,
    at: T0,
  } as const;
  const TITLE = 'the health check pods of UpgradePolicy careful';
  const DONE: Observation = { kind: 'succeeded', attempt: later(0), since: later(0) };
  const at = (found: object | undefined, forMs?: number, more = {}) =>
    healthy.evaluate(
      withParts(input('worker'), {
        policy: policyOf(forMs, more),
        outside: { health: found === undefined ? [] : [{ ...result, ...found }] },
        now: T0 + MINUTE,
      }),
    );

  test('that have not answered are waited for', () => {
    const ends = 'the check has answered, or the leader has stopped waiting for the answer';
    const more = { isPassing: true, recheckMs: 2000 };
    expect(at(undefined)).toMatchObject(
      waitOf('HealthUnknown', `${TITLE} has not answered yet`, ends, { isPassing: true }),
    );
    expect(at({ isPending: true })).toMatchObject(
      waitOf('HealthUnknown', `${TITLE} has not answered yet: all work`, ends, {
        isPassing: more.isPassing,
      }),
    );
  });

  test('that got no answer wait, unless the policy ignores that', () => {
    expect(at({ state: 'unknown' })).toMatchObject({
      reason: { code: 'HealthUnknown', message: `${TITLE} got no answer: all work` },
      ends: 'the check gets an answer, or the policy has health.onUnknown: Ignore',
      since: later(0),
    });
    expect(at({ state: 'unknown' }, undefined, { ignoresUnknown: true })).toEqual(PASSED);
  });

  test('must have passed for the time of the policy', () => {
    expect(at({}, HOUR)).toEqual({
      kind: 'wait',
      reason: {
        code: 'HealthCheckFailing',
        message: `${TITLE} passes, but has not passed for 1 h yet: all work`,
        details: { policy: 'careful', check: 'pods' },
      },
      ends: 'the check has passed for 1 h',
      since: later(0),
      until: later(HOUR),
      recheckMs: HOUR - MINUTE,
    });
    expect(at({}, MINUTE)).toEqual(PASSED);
  });

  test.each<[string, object, number | undefined, string]>([
    ['of the whole cluster', {}, MINUTE, 'wait'],
    ['of this node', { nodes: ['n1'] }, MINUTE, 'wait'],
    ['of another node', { nodes: ['n2'] }, MINUTE, 'pass'],
    ['from before the watch', { at: T0 - 1 }, MINUTE, 'wait'],
    ['from before the watch of another node', { at: T0 - 1, nodes: ['n2'] }, MINUTE, 'wait'],
    [
      'from before the watch of another node, for a command',
      { at: 0, nodes: ['n2'] },
      undefined,
      'pass',
    ],
    ['from the start of the watch, of another node', { at: T0, nodes: ['n2'] }, MINUTE, 'pass'],
  ])('after an upgrade that fail, with an answer %s', (_title, found, watchedMs, kind) => {
    const given = withParts(input('worker', { observation: DONE, watchedMs }), {
      policy: policyOf(),
      outside: { health: [{ ...result, state: 'failing', ...found }] },
      now: T0 + MINUTE,
    });
    expect(healthyAfter.evaluate(given).kind).toBe(kind);
  });

  test('that passed after an upgrade also fail while they have no answer for another node', () => {
    const given = withParts(input('worker', { observation: DONE }), {
      policy: policyOf(),
      outside: { health: [{ ...result, state: 'unknown', nodes: ['n2'] }] },
    });
    expect(healthyAfter.evaluate(given)).toMatchObject({ reason: { code: 'HealthUnknown' } });
  });

  test('that a person may accept are judged again soon, until the acceptance is known', () => {
    const verdict = {
      kind: 'wait',
      reason: because('HealthUnknown', 'x'),
      ends: 'it passes',
      since: later(0),
    } as const;
    const judge = (
      decisions: Parameters<typeof unlessAccepted>[0]['plan']['decisions'],
      recheckMs?: number,
    ) => {
      const given = withParts(input('worker'), { plan: { decisions } });
      return unlessAccepted(given, 'pods', { ...verdict, recheckMs });
    };
    expect(judge(NEVER)).toEqual({ ...verdict, recheckMs: undefined });
    expect(judge(unanswered(NO_ANSWER), 5)).toEqual({ ...verdict, recheckMs: 5 });
    expect(judge(UNASKED)).toEqual({
      ...verdict,
      since: undefined,
      isPassing: true,
      probe: { kind: 'decisions' },
    });
    const none = answered({
      plan: 'plan/a',
      place: 'ns/a',
      exists: true,
      approvals: [],
      accepted: [],
    });
    const ends = 'it passes, or somebody accepts the failure: refit accept plan/a --check pods';
    expect(judge(none)).toEqual({ ...verdict, ends, recheckMs: 10_000 });
    expect(judge(none, 3000)).toMatchObject({ recheckMs: 3000 });
    expect(judge(none, 30_000)).toMatchObject({ recheckMs: 10_000 });
  });
});

test('a plan that goes back asks which versions its nodes ran before', () => {
  expect(untilEarlierVersionsAreRead(UNASKED)).toEqual(
    waitOf(
      'PreconditionsUnknown',
      'reading which versions the nodes ran before',
      'the API server answers',
      {
        isPassing: true,
        probe: { kind: 'decisions' },
      },
    ),
  );
  expect(untilEarlierVersionsAreRead(unanswered(NO_ANSWER))).toMatchObject({
    kind: 'wait',
    reason: NO_ANSWER.reason,
    recheckMs: NO_ANSWER.recheckMs,
  });
});

describe('a hook between the drain and the work', () => {
  const hook = buildHook('detach', 'afterDrain');
  const at = (facts: KnownFacts, drain = {}) => {
    const policy = buildPolicy({
      name: 'careful',
      hooks: [hook],
      drain: { ...buildPolicy().drain, ...drain },
    });
    return hooksPossible.evaluate({ ...input('worker', { node: NODE, ...facts }), policy });
  };

  test('needs an answer of the node', () => {
    const given = input('worker');
    expect(at({ drainDelegation: UNASKED })).toMatchObject(
      waitOf(
        'DrainDelegationUnknown',
        'asking whether n1 delegates its drain',
        'the API server answers',
        {
          probe: { kind: 'drain-delegation', target: given.target },
        },
      ),
    );
    expect(at({ drainDelegation: unanswered(NO_ANSWER) })).toMatchObject({
      reason: NO_ANSWER.reason,
    });
    expect(at({ drainDelegation: answered(true) })).toEqual(PASSED);
    expect(at({ node: undefined, drainDelegation: UNASKED })).toEqual(PASSED);
  });

  test('cannot run if nothing waits for it', () => {
    const ends =
      'the leader drains the node, or the policy has no such hook, or the hook has `onFailure: Ignore`';
    const sentence = (why: string): string =>
      `the hook detach of UpgradePolicy careful cannot run between the drain and the restart: ${why}, and does not wait for the leader`;
    expect(at({ drainDelegation: answered(false) })).toEqual(
      waitOf('HookImpossible', sentence('n1 drains itself'), ends, { recheckMs: 10_000 }),
    );
    expect(at({}, { unheld: 'withDrain' })).toEqual(
      waitOf('HookImpossible', sentence('the work on n1 drains its node itself'), ends, {
        recheckMs: 10_000,
      }),
    );
    expect(at({}, { unheld: 'withoutDrain' })).toEqual(PASSED);
  });
});

test.each<[string, object, string]>([
  ['only cordons', { cordonOnly: true }, 'pass'],
  ['goes on without a complete drain', { onDeadline: 'proceed' }, 'pass'],
  ['does not drain', { enabled: false }, 'pass'],
  ['drains', {}, 'wait'],
])('a policy that %s: whether the drain is previewed', (_title, drain, kind) => {
  const policy = buildPolicy({ drain: { ...buildPolicy().drain, ...drain } });
  const given = { ...input('worker', { node: NODE, drainPreview: UNASKED }), policy };
  expect(drainPossible.evaluate(given).kind).toBe(kind);
});

describe('a download before the cordon', () => {
  const at = (requiredDownload: RequiredDownload, now = T0) =>
    payloadPresent.evaluate({ ...input('worker', { requiredDownload }), now });
  const PENDING = 'n1 downloads what the plan installs, before its node is cordoned';

  test('passes by itself, and holds the slot unless it is repeated', () => {
    const waiting = waitOf('DownloadPending', PENDING, 'the download is complete', {
      isPassing: true,
      holdsSlot: true,
    });
    expect(at({ kind: 'unasked' })).toEqual(waiting);
    expect(at({ kind: 'asked' })).toEqual(waiting);
    expect(at({ kind: 'asked', isRetry: true })).toEqual(
      waitOf('DownloadPending', PENDING, 'the download is complete', { isPassing: true }),
    );
  });

  test.each<[string, number, string, number]>([
    ['just now', 0, later(0), MINUTE],
    ['some time ago', 20_000, later(0), 40_000],
    ['long ago', HOUR, later(0), 0],
    ['in the future', 0, later(HOUR), MINUTE],
    ['at a time that is none', 0, 'soon', 0],
  ])(
    'that failed %s is asked for again after the rest of its pause',
    (_title, now, since, recheckMs) => {
      const found = at({ kind: 'failed', problem: 'its Job failed', since }, T0 + now);
      expect(found).toMatchObject({ recheckMs });
      expect(found).toMatchObject({
        ends: 'the download succeeds; it is repeated until then, and the node is not cordoned before. Correct the plan, or repair the server or the network path to it; with prefetch: None of an UpgradePolicy, nodes start without it',
      });
    },
  );

  test('with a problem that may pass is not judged again by itself', () => {
    expect(at({ kind: 'asked', problem: 'its Job waits' })).not.toHaveProperty('recheckMs');
  });
});
