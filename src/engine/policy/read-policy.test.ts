/** Tests how an UpgradePolicy is interpreted, and the problems of an invalid UpgradePolicy. */
import { describe, expect, test, vi } from 'vitest';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { HOUR, MINUTE, SECOND } from '../../../test/support/clock/times.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { readPolicy } from './read-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from './rollout-policy.ts';

function read(spec: UpgradePolicySpec): RolloutPolicy {
  return readPolicy(buildUpgradePolicy('nightly', spec));
}

test('a policy without any field is the default policy', () => {
  expect(read({})).toEqual({ ...DEFAULT_POLICY, name: 'nightly' });
});

test('a policy with every field is read with the value of each field', () => {
  const spec: UpgradePolicySpec = {
    paused: true,
    failureBudget: 2,
    maxUnavailable: '10%',
    order: ['canary=true', 'topology.kubernetes.io/zone'],
    deadlines: {
      answer: '1m',
      download: '1h30m',
      drain: '20m',
      apply: '2m',
      restart: '2m30s',
      ready: '3m',
      target: '4h',
    },
    drain: {
      enabled: false,
      deleteEmptyDirData: false,
      force: false,
      gracePeriodSeconds: 0,
      onDeadline: 'Skip',
      softTaint: false,
      uncordon: 'Always',
    },
    soak: '30s',
    coordinate: ['Karpenter', 'GPUOperator'],
    agents: { require: 'Refit' },
    controllersNotReady: 'End',
    edits: { afterEnd: 'Restart', whileRunning: 'Ignore' },
    goneNodes: 'Skip',
    newNodes: 'Include',
    versions: { allow: ['Downgrade'] },
    virtualNodes: 'Count',
    payloads: {
      requireSha256: true,
      requireHttps: true,
      requireImageDigest: true,
      diskReserveMiB: 512,
    },
    windows: [
      { days: ['Monday', 'Sunday'], start: '22:05', length: '4h', timeZone: 'Europe/Berlin' },
    ],
    blackouts: [{ from: '2026-12-20', to: '2026-12-21', timeZone: 'Europe/Berlin' }],
  };
  expect(read(spec)).toEqual({
    name: 'nightly',
    problems: [],
    paused: true,
    maxFailures: 2,
    maxUnavailable: { percent: 10 },
    order: ['canary=true', 'topology.kubernetes.io/zone'],
    targetDeadlineMs: 4 * HOUR,
    stepDeadlines: {
      answer: MINUTE,
      download: 90 * MINUTE,
      drain: 20 * MINUTE,
      apply: 2 * MINUTE,
      // The sum of twice the restart timeout, the time until the node is Ready, the soak time, and one minute.
      restart: 5 * MINUTE + 3 * MINUTE + 30 * SECOND + MINUTE,
      ready: 3 * MINUTE,
    },
    drain: {
      enabled: false,
      options: { localData: 'refuse', unmanagedPods: 'refuse', gracePeriodSeconds: 0 },
      onDeadline: 'skip',
      softTaint: false,
      uncordon: 'always',
    },
    windows: [
      { days: [1, 7], startMinute: 22 * 60 + 5, lengthMs: 4 * HOUR, timeZone: 'Europe/Berlin' },
    ],
    blackouts: [
      { from: Date.parse('2026-12-19T23:00:00Z'), to: Date.parse('2026-12-21T23:00:00Z') },
    ],
    allow: new Set(['Downgrade']),
    requireImageDigest: true,
    requireSha256: true,
    requireHttps: true,
    prefetch: 'next',
    countsVirtual: true,
    coordinate: ['Karpenter', 'GPUOperator'],
    requireAgent: true,
    restartsEdited: true,
    ignoresEdits: true,
    includesNew: true,
    leavesOutGone: true,
    endsNotReady: true,
    agent: {
      soakMs: 30 * SECOND,
      restartTimeoutMs: 150 * SECOND,
      readyTimeoutMs: 3 * MINUTE,
      downloadTimeoutMs: 90 * MINUTE,
      requireHttps: true,
      diskReserveBytes: 512 * 1024 ** 2,
      drain: {
        enabled: false,
        localData: 'refuse',
        unmanagedPods: 'refuse',
        gracePeriodSeconds: 0,
        timeoutMs: 21 * MINUTE,
        uncordon: 'always',
      },
    },
  } satisfies RolloutPolicy);
});

describe('times', () => {
  test('without a deadline for the target, all steps together bound it', () => {
    const { stepDeadlines, targetDeadlineMs } = read({ deadlines: { download: '10h' } });
    expect(targetDeadlineMs).toBe(DEFAULT_POLICY.targetDeadlineMs + 4 * HOUR);
    expect(Object.values(stepDeadlines).reduce((sum, each) => sum + each)).toBe(targetDeadlineMs);
  });

  test('rules for pods reach the options of the leader, and not the agent', () => {
    const web = { matchLabels: { app: 'web' } };
    const { drain, agent, problems } = read({
      drain: {
        pods: [
          { selector: web, namespaces: ['shop'], behavior: 'Skip' },
          { behavior: 'WaitCompleted' },
          { behavior: 'Drain', order: 7 },
        ],
        order: 'PriorityClass',
        waitForJobs: '30m',
      },
    });
    expect(problems).toEqual([]);
    expect(drain.options).toEqual({
      localData: 'evict',
      unmanagedPods: 'evict',
      podRules: [
        { pods: [{ selector: web, namespaces: ['shop'] }], action: 'leave', turn: 0 },
        { pods: [{}], action: 'wait', turn: 0 },
        { pods: [{}], action: 'evict', turn: 7 },
      ],
      byPriority: true,
      jobsWaitMs: 30 * MINUTE,
    });
    expect(agent).toEqual({});
  });

  test.each<[object, number | undefined]>([
    [{ exclude: true }, 30_000],
    [{ exclude: true, grace: '5s' }, 5_000],
    [{ exclude: false, grace: '5s' }, undefined],
    [{}, undefined],
  ])('load balancers: %j reaches leader and agent', (loadBalancers, graceMs) => {
    const { drain, agent, problems } = read({ drain: { loadBalancers } });
    expect(problems).toEqual([]);
    expect([drain.excludes, drain.options.graceMs]).toEqual([
      graceMs === undefined ? undefined : true,
      graceMs,
    ]);
    expect(agent).toEqual(graceMs === undefined ? {} : { drain: { graceMs } });
  });

  test.each<[object, boolean | undefined]>([
    [{ startWith: 'FewestBudgetPods' }, true],
    [{ startWith: 'FewestBudgetPods', enabled: true }, true],
    [{}, undefined],
  ])('%j says which nodes start first, and agents need not know it', (spec, first) => {
    const { drain, agent, problems } = read({ drain: spec });
    expect([drain.startsWithFewest, agent, problems]).toEqual([first, {}, []]);
  });

  test('EvictionRequests cannot be combined with a grace period', () => {
    const { problems } = read({ drain: { evictionRequests: 'Use', gracePeriodSeconds: 30 } });
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('spec.drain.gracePeriodSeconds must be absent'),
    ]);
  });

  test('EvictionRequests: only `Use` makes the leader use them, and never the agent', () => {
    const { drain, agent, problems } = read({ drain: { evictionRequests: 'Use' } });
    expect([drain.options.evictionRequests, agent, problems]).toEqual([true, {}, []]);
    expect(read({ drain: {} }).drain.options).not.toHaveProperty('evictionRequests');
  });

  test.each<[object, number | undefined]>([
    [{ waitForDetach: true }, 120_000],
    [{ waitForDetach: true, timeout: '5s' }, 5_000],
    [{ timeout: '5s' }, undefined],
  ])('volumes: %j reaches the leader, and not the agent', (volumes, detachMs) => {
    const { drain, agent } = read({ drain: { volumes } });
    expect([drain.options.detachMs, agent]).toEqual([detachMs, {}]);
  });

  test.each<[string, UpgradePolicySpec]>([
    [
      'UpgradePolicy nightly: spec.drain.startWith must be absent, because spec.drain.enabled is false; found "FewestBudgetPods"',
      { drain: { startWith: 'FewestBudgetPods', enabled: false } },
    ],
    [
      'UpgradePolicy nightly: spec.drain.volumes.timeout must be shorter than spec.deadlines.drain, which is 1 min; found "2m"',
      { drain: { volumes: { waitForDetach: true, timeout: '2m' } }, deadlines: { drain: '1m' } },
    ],
    [
      'UpgradePolicy nightly: spec.drain.loadBalancers.grace must be shorter than spec.deadlines.drain, which is 1 min; found "2m"',
      { drain: { loadBalancers: { exclude: true, grace: '2m' } }, deadlines: { drain: '1m' } },
    ],
    [
      'UpgradePolicy nightly: spec.drain.waitForJobs must be shorter than spec.deadlines.drain, which is 30 min; found "30m"',
      { drain: { waitForJobs: '30m' }, deadlines: { drain: '30m' } },
    ],
    [
      'UpgradePolicy nightly: spec.drain.pods[0].behavior must be Drain if `order` is set, because only pods with behavior Drain are evicted; found "Skip"',
      { drain: { pods: [{ behavior: 'Skip', order: 3 }] } },
    ],
    [
      'UpgradePolicy nightly: spec.drain.pods[0].selector must be a label selector (the operator In for the label app needs at least one value); ' +
        'found {"matchExpressions":[{"key":"app","operator":"In"}]}',
      {
        drain: {
          pods: [
            {
              behavior: 'Skip',
              selector: { matchExpressions: [{ key: 'app', operator: 'In' }] },
            },
          ],
        },
      },
    ],
  ])('%s', (message, spec) => {
    expect(read(spec).problems.map((problem) => problem.message)).toEqual([message]);
  });

  test('a target whose policy waits for its drain has no deadline', () => {
    const policy = read({ drain: { onDeadline: 'Wait' }, deadlines: { drain: '5m' } });
    expect([policy.stepDeadlines.drain, policy.targetDeadlineMs]).toEqual([Infinity, Infinity]);
  });

  test('if the default policy requires https, agents and gates are told so', () => {
    using required = vi.spyOn(DEFAULT_POLICY, 'requireHttps', 'get').mockReturnValue(true);
    const { requireHttps, agent } = read({});
    expect([requireHttps, agent]).toEqual([true, { requireHttps: true }]);
    expect(required).toHaveBeenCalled();
  });

  test('agents get the policy, and use their flags for the rest', () => {
    expect(read({}).agent).toEqual({});
    expect(read({ payloads: { problemTimeout: '0s' } }).downloadProblemMs).toBe(0);
    expect(read({ payloads: { problemTimeout: '1h' } }).downloadProblemMs).toBe(3_600_000);
    expect(read({ soak: '0s' }).agent).toEqual({ soakMs: 0 });
    expect(read({ soak: '0m' }).agent).toEqual({ soakMs: 0 });
    expect(read({ etcdSnapshot: {} }).agent).toEqual({ etcdSnapshot: {} });
    expect(
      read({ etcdSnapshot: { mode: 'Require', keep: 3, timeout: '5m', certificate: `${PEM}\n` } })
        .agent,
    ).toEqual({
      etcdSnapshot: { require: true, keep: 3, timeoutMs: 5 * MINUTE, certificate: PEM },
    });
    expect(read({ deadlines: { ready: '1m' } }).agent).toEqual({ readyTimeoutMs: MINUTE });
    expect(read({ deadlines: { download: '12h' } }).agent).toEqual({
      downloadTimeoutMs: 12 * HOUR,
    });
    expect(read({ payloads: { requireHttps: true, requireSha256: true } }).agent).toEqual({
      requireHttps: true,
    });
    expect(read({ payloads: { requireHttps: false } }).agent).toEqual({});
    expect(read({ payloads: { diskReserveMiB: 2 } }).agent).toEqual({
      diskReserveBytes: 2 * 1024 * 1024,
    });
    expect(
      read({ drain: { deleteEmptyDirData: true, onDeadline: 'Skip', enabled: true } }).agent,
    ).toEqual({});
    expect(read({ drain: { onDeadline: 'Wait' }, deadlines: { drain: '5m' } }).agent).toEqual({});
    expect(read({ drain: { gracePeriodSeconds: 7 } }).agent).toEqual({
      drain: { gracePeriodSeconds: 7 },
    });
  });

  test('the deadline of a restart leaves an agent time to roll back', () => {
    const { restart, ready } = DEFAULT_POLICY.stepDeadlines;
    expect(restart).toBeGreaterThan(ready + 2 * 90 * SECOND);
  });

  test.each<[string, string, string, string, string | undefined]>([
    [
      'whole days, the last one too',
      '2026-12-20',
      '2026-12-20',
      '2026-12-20T00:00Z',
      '2026-12-21T00:00Z',
    ],
    [
      'moments as they are',
      '2026-12-20T18:00:00Z',
      '2027-01-06T06:00:00+01:00',
      '2026-12-20T18:00Z',
      '2027-01-06T05:00Z',
    ],
    [
      'a day and a moment',
      '2026-12-20',
      '2026-12-20T06:00:00Z',
      '2026-12-20T00:00Z',
      '2026-12-20T06:00Z',
    ],
  ])('a blackout of %s begins and ends at the right moments', (_, from, to, begins, ends) => {
    const { blackouts, problems } = read({ blackouts: [{ from, to }] });
    expect(problems).toEqual([]);
    expect(blackouts).toEqual([{ from: Date.parse(begins), to: Date.parse(ends ?? '') }]);
  });

  test.each<[string, string, string, readonly string[]]>([
    ['2026-02-30', '2026-01-01', 'X', ['timeZone', 'from']],
    ['2026-02-28', '2026-02-30', 'X', ['timeZone', 'to']],
    ['2026-02-28', '2026-01-01', 'X', ['timeZone', 'to']],
    ['2026-02-30', '2026-02-31', 'UTC', ['from', 'to']],
    // Whether `from` is before `to` depends on the time zone. So with an invalid time zone, only the time zone is
    // reported.
    ['2026-02-28', '2026-02-27T23:00:00Z', 'X', ['timeZone']],
    ['2026-02-28', '2026-02-27T23:00:00Z', 'UTC', ['to']],
  ])('a blackout from %s to %s in %s: every wrong field', (from, to, timeZone, fields) => {
    const { blackouts, problems } = read({ blackouts: [{ from, to, timeZone }] });
    expect(blackouts).toEqual([]);
    expect(
      problems.map(({ message }) => / spec\.blackouts\[0\]\.(\w+) must be/.exec(message)?.[1]),
    ).toEqual(fields);
  });

  test('a day of 25 hours is a blackout of 25 hours', () => {
    const { blackouts } = read({
      blackouts: [{ from: '2026-10-25', to: '2026-10-25', timeZone: 'Europe/Berlin' }],
    });
    expect(blackouts.map(({ from, to }) => to - from)).toEqual([25 * HOUR]);
  });
});

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
const WINDOW = { start: '22:00', length: '4h', timeZone: 'UTC' };

test.each<[UpgradePolicySpec, string]>([
  [
    { deadlines: { download: '0s' } },
    'spec.deadlines.download must be a time above zero and below a year, such as 90s or 1h30m; found "0s"',
  ],
  [
    { deadlines: { restart: '99999999h' } },
    'spec.deadlines.restart must be a time above zero and below a year, such as 90s or 1h30m; found "99999999h"',
  ],
  [
    { soak: '9000h' },
    'spec.soak must be 0s, or a time above zero and below a year, such as 90s or 1h30m; found "9000h"',
  ],
  [
    { keepPrevious: '9000h' },
    'spec.keepPrevious must be 0s, or a time above zero and below a year, such as 90s or 1h30m; found "9000h"',
  ],
  [
    { windows: [WINDOW, { ...WINDOW, timeZone: 'Europe/Atlantis' }] },
    'spec.windows[1].timeZone must be a time zone such as Europe/Berlin; found "Europe/Atlantis"',
  ],
  [
    { windows: [{ ...WINDOW, length: '169h' }] },
    'spec.windows[0].length must be a time above zero and up to 168h, such as 4h; found "169h"',
  ],
  [
    { windows: [{ ...WINDOW, length: '0m' }] },
    'spec.windows[0].length must be a time above zero and up to 168h, such as 4h; found "0m"',
  ],
  [
    { blackouts: [{ from: '2026-02-30', to: '2026-03-02' }] },
    'spec.blackouts[0].from must be a date of the calendar such as 2026-12-20, or a time such as 2026-12-20T18:00:00Z; found "2026-02-30"',
  ],
  [
    { blackouts: [{ from: '2026-03-01T00:00:00Z', to: '2026-03-01T25:00:00Z' }] },
    'spec.blackouts[0].to must be a date of the calendar such as 2026-12-20, or a time such as 2026-12-20T18:00:00Z; found "2026-03-01T25:00:00Z"',
  ],
  [
    { blackouts: [{ from: '2026-03-02', to: '2026-03-01' }] },
    'spec.blackouts[0].to must be after 2026-03-02; found "2026-03-01"',
  ],
  [
    { blackouts: [{ from: '2026-03-02', to: '2026-03-03', timeZone: 'Mars/Olympus' }] },
    'spec.blackouts[0].timeZone must be a time zone such as Europe/Berlin; found "Mars/Olympus"',
  ],
  // An API server with our CRD refuses these specs. An API server with a newer CRD, or without the CRD, may store them.
  [
    JSON.parse('{"canary":3}') as UpgradePolicySpec,
    'spec: has no member canary, check the spelling',
  ],
  [
    { windows: [{ ...WINDOW, start: '24:00' }] },
    'spec.windows[0].start: "24:00" is not a time of day; use hours and minutes with two digits each',
  ],
  [
    { order: ['canary', 'zone in (a)'] },
    'spec.order[1]: is the text "zone in (a)", must be the key of a label such as topology.kubernetes.io/zone, or key=value',
  ],
])('%j is held back by name', (spec, message) => {
  const { problems } = read(spec);
  expect(problems).toHaveLength(1);
  expect(problems[0]?.code).toBe('PolicyUnreadable');
  expect(problems[0]?.message).toContain(`UpgradePolicy nightly: ${message}`);
});

test('every invalid field of a policy is reported', () => {
  const { problems } = read({
    soak: '9000h',
    windows: [{ start: '22:00', length: '0h', timeZone: 'Nowhere' }],
  });
  expect(problems.map(({ message }) => message.split(' ')[2])).toEqual([
    'spec.soak',
    'spec.windows[0].length',
    'spec.windows[0].timeZone',
  ]);
});

test('a policy with a field of a later release holds drains and deadlines, and ends no rollout for a failure that it may allow', () => {
  expect(read(JSON.parse('{"failureBudget":3,"canary":3}') as UpgradePolicySpec)).toMatchObject({
    heldBy: 'the drain under UpgradePolicy nightly, which cannot be read,',
    maxFailures: Number.POSITIVE_INFINITY,
    drain: { onDeadline: 'skip' },
  });
});

test('retry gives the number of attempts and the pause, which is 5m by default', () => {
  expect(read({ retry: { attempts: 3 } }).retry).toEqual({ attempts: 3, backoffMs: 5 * MINUTE });
  const retry = { attempts: 2, backoff: '90s' };
  expect(read({ retry }).retry).toEqual({ attempts: 2, backoffMs: 90 * SECOND });
  expect(read({ retry: { attempts: 2, backoff: '9000h' } }).problems[0]?.message).toBe(
    'UpgradePolicy nightly: spec.retry.backoff must be a time above zero and below a year, such as 90s or 1h30m; found "9000h"',
  );
});

test('each pin names a version, and two pins with one selector are refused', () => {
  const selector = { matchLabels: { gpu: 'true' } };
  const pin = [{ selector, version: 'v1.36.3' }];
  expect(read({ versions: { pin } }).pins).toEqual(pin);
  const { problems } = read({
    versions: { pin: [...pin, { selector, version: 'v1.36.4' }, { selector: {}, version: 'new' }] },
  });
  expect(problems.map(({ message }) => message)).toEqual([
    'UpgradePolicy nightly: spec.versions.pin[1].version must be v1.36.3 as in spec.versions.pin[0], which selects the same nodes; found "v1.36.4"',
    'UpgradePolicy nightly: spec.versions.pin[2].version must be a version such as v1.36.3; found "new"',
  ]);
});
