/** Proves which release becomes a Plan: once, in order, in its window, and never in place of a Plan that a person wrote. */
import { expect, test } from 'vitest';
import { buildPlan } from '../../../test/support/builders/plans.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import { originOf } from '../../api/autopilot/plan-origin.ts';
import type { UpdateConfig } from '../../api/autopilot/update-config.ts';
import { problemsOf } from '../../dialects/autopilot/plan/problems.ts';
import { phaseOfPlan } from '../../dialects/autopilot/plan/states.ts';
import { rfc3339 } from '../../util/clock.ts';
import type { Release } from '../channel/read-index.ts';
import { readUpdateConfig, type UpdateSettings } from '../config/read-config.ts';
import { decideUpdate, type UpdateDecision, type UpdateFacts } from './decide-update.ts';
import { makePlan } from './make-plan.ts';

const SHA = 'ab'.repeat(32);
const HOUR = 3_600_000;
const MONDAY = Date.UTC(2026, 10, 23, 22, 30);

function config(
  spec: Partial<UpdateConfig['spec']> = {},
  annotations: Record<string, string> = {},
): UpdateConfig {
  const periodic = { days: ['Monday'], startTime: '22:00', length: '2h' };
  const upgradeStrategy = { type: 'periodic', periodic } as const;
  return { metadata: { name: 'u', uid: 'uid-u', annotations }, spec: { upgradeStrategy, ...spec } };
}

function settingsOf(from: UpdateConfig): UpdateSettings {
  const { settings, problems } = readUpdateConfig(from, {
    targetProblems: () => [],
    allowInsecure: false,
  });
  if (!settings) throw new Error(problems.join());
  return settings;
}

function release(version: string, more: Partial<Release> = {}): Release {
  const files = { 'linux-amd64': { url: `http://example.com/${version}`, sha256: SHA } };
  return { version, k0s: files, airgap: {}, withdrawn: {}, ...more };
}

/** Returns the Plan for a release in that state. */
function planFor(version: string, state?: string): Plan {
  const made = makePlan(config(), settingsOf(config()), release(version));
  return { ...made, ...(state ? { status: { state, commands: [] } } : {}) };
}

function decide(
  version: string,
  facts: Partial<UpdateFacts> = {},
  more: Partial<Release> = {},
): UpdateDecision {
  return decideUpdate({
    settings: settingsOf(config()),
    release: release(version, more),
    versions: ['v1.36.3+k0s.0', 'v1.36.3+k0s.0'],
    kubelets: ['v1.36.3+k0s'],
    plan: undefined,
    phaseOf: phaseOfPlan,
    allowUnverified: false,
    now: MONDAY,
    ...facts,
  });
}

const newer = { settings: settingsOf(config({}, { 'upgrade.refit.dev/after-failure': 'Newer' })) };
const http = { 'linux-amd64': { url: 'http://example.com/k0s' } };
const https = { 'linux-amd64': { url: 'https://example.com/k0s' } };
const airgap = {
  settings: settingsOf(
    config({ planSpec: { commands: [{ airgapupdate: { workers: { discovery: {} } } }] } }),
  ),
};

test.each<readonly [string, UpdateDecision, string, string]>([
  ['a newer patch', decide('v1.36.4+k0s.0'), 'create', 'UpdateStarted'],
  ['a newer build', decide('v1.36.3+k0s.10'), 'create', 'UpdateStarted'],
  ['the next minor version', decide('v1.37.0+k0s.0'), 'create', 'UpdateStarted'],
  [
    'Refit creates no Plan for a release without a build, because no node reports such a version',
    decide('v1.36.4'),
    'none',
    'VersionUnknown',
  ],
  [
    'Refit creates no Plan for the release that already runs',
    decide('v1.36.3+k0s.0'),
    'none',
    'UpToDate',
  ],
  [
    'a worker behind',
    decide('v1.36.3+k0s.0', { kubelets: ['v1.36.3+k0s', 'v1.36.2+k0s'] }),
    'create',
    'UpdateStarted',
  ],
  [
    'a Plan that ended without a controller, such as for a label that none has',
    decide('v1.36.4+k0s.0', { plan: planFor('v1.36.4+k0s.0', 'Completed'), kubelets: [] }),
    'none',
    'NotUpgraded',
  ],
  [
    'a Plan that ended and left a worker behind',
    decide('v1.36.3+k0s.0', {
      plan: planFor('v1.36.3+k0s.0', 'Completed'),
      kubelets: ['v1.36.3+k0s', 'v1.36.2+k0s'],
    }),
    'none',
    'NotUpgraded',
  ],
  ['Refit does not downgrade to an older release', decide('v1.36.2+k0s.0'), 'none', 'Downgrade'],
  [
    'one controller behind',
    decide('v1.36.3+k0s.0', { versions: ['v1.36.3+k0s.0', 'v1.36.2+k0s.0'] }),
    'create',
    'UpdateStarted',
  ],
  [
    'a controller of no known version',
    decide('v1.36.4+k0s.0', { versions: ['v1.36.3+k0s.0', ''] }),
    'none',
    'VersionUnknown',
  ],
  ['no controller', decide('v1.36.4+k0s.0', { versions: [] }), 'none', 'VersionUnknown'],
  ['two minor versions ahead', decide('v1.38.1+k0s.0'), 'ask', 'SkippedMinor'],
  ['another major version', decide('v2.0.0+k0s.0'), 'ask', 'SkippedMinor'],
  [
    'outside of the window',
    decide('v1.36.4+k0s.0', { now: MONDAY + 2 * 3_600_000 }),
    'none',
    'WindowClosed',
  ],
  [
    'withdrawn',
    decide('v1.36.4+k0s.0', {}, { withdrawn: { 'v1.36.4+k0s.0': 'loses data' } }),
    'none',
    'Withdrawn',
  ],
  [
    'Refit creates no Plan for a download over plain http without a hash',
    decide('v1.36.4+k0s.0', {}, { k0s: http }),
    'none',
    'Unverified',
  ],
  [
    'neither, allowed',
    decide('v1.36.4+k0s.0', { allowUnverified: true }, { k0s: http }),
    'create',
    'UpdateStarted',
  ],
  ['https without a hash', decide('v1.36.4+k0s.0', {}, { k0s: https }), 'create', 'UpdateStarted'],
  ['no binary', decide('v1.36.4+k0s.0', {}, { k0s: {} }), 'none', 'NoDownload'],
  [
    'Refit creates no Plan if a planned airgap bundle has no download',
    decide('v1.36.4+k0s.0', airgap),
    'none',
    'NoDownload',
  ],
  [
    'no binary, and none is planned',
    decide('v1.36.4+k0s.0', airgap, { k0s: {}, airgap: https }),
    'create',
    'UpdateStarted',
  ],
])('%s: %s', (_name, { action, reason }, wantedAction, wantedReason) => {
  expect([action, reason]).toEqual([wantedAction, wantedReason]);
});

test.each<readonly [string, Plan, Partial<UpdateFacts>, string, string]>([
  [
    'a Plan of a person, done',
    { ...buildPlan({}), status: { state: 'Completed', commands: [] } },
    {},
    'none',
    'ForeignPlan',
  ],
  [
    'a Plan of a person, failed',
    { ...buildPlan({}), status: { state: 'ApplyFailed', commands: [] } },
    newer,
    'none',
    'ForeignPlan',
  ],
  ['our Plan, not seen yet', planFor('v1.36.4+k0s.0'), {}, 'none', 'PlanRunning'],
  ['our Plan, running', planFor('v1.36.4+k0s.0', 'SchedulableWait'), newer, 'none', 'PlanRunning'],
  [
    'a Plan of Refit that is done: Refit creates the next Plan',
    planFor('v1.36.4+k0s.0', 'Completed'),
    {},
    'create',
    'UpdateStarted',
  ],
  [
    'a failed Plan of Refit: Refit creates no new Plan',
    planFor('v1.36.4+k0s.0', 'ApplyFailed'),
    {},
    'none',
    'PlanFailed',
  ],
  [
    'a failed Plan of Refit with after-failure set to Newer: Refit creates a Plan for a newer release',
    planFor('v1.36.4+k0s.0', 'ApplyFailed'),
    newer,
    'create',
    'UpdateStarted',
  ],
  ['our newer Plan, failed', planFor('v1.36.6+k0s.0', 'ApplyFailed'), newer, 'none', 'PlanFailed'],
  [
    'a failed Plan of Refit for the same release: Refit creates no new Plan',
    planFor('v1.36.5+k0s.0', 'IncompleteTargets'),
    newer,
    'none',
    'PlanFailed',
  ],
  [
    'our Plan for this release, done',
    planFor('v1.36.5+k0s.0', 'Completed'),
    { versions: ['v1.36.5+k0s.0'], kubelets: ['v1.36.5+k0s'] },
    'none',
    'UpToDate',
  ],
])('what the leader does about a new release beside %s', (_name, plan, facts, action, reason) => {
  const decision = decide('v1.36.5+k0s.0', { plan, ...facts });
  expect([decision.action, decision.reason]).toEqual([action, reason]);
});

test.each([
  ['SchedulableWait', 'Plan autopilot upgrades to v1.37.0+k0s.0'],
  [
    'ApplyFailed',
    'the Plan for v1.37.0+k0s.0 ended as ApplyFailed; correct the cause and run `refit retry` for',
  ],
])('a channel that went back does not hide a Plan that is half done: %s', (state, message) => {
  const versions = ['v1.37.0+k0s.0', 'v1.36.3+k0s.0'];
  const decision = decide('v1.36.3+k0s.0', { versions, plan: planFor('v1.37.0+k0s.0', state) });
  expect(decision.message).toContain(message);
  expect(decision.message).not.toContain('v1.36.3');
});

test('a running Plan of a release that was withdrawn is stopped, and the next release may follow it', () => {
  const withdrawn = { 'v1.36.4+k0s.0': 'loses data' };
  const running = decide(
    'v1.36.3+k0s.0',
    { plan: planFor('v1.36.4+k0s.0', 'Schedulable') },
    { withdrawn },
  );
  expect(running).toMatchObject({
    action: 'abort',
    message: 'release v1.36.4+k0s.0 was withdrawn: loses data',
  });
  const over = decide(
    'v1.36.5+k0s.0',
    { plan: planFor('v1.36.4+k0s.0', 'ApplyFailed') },
    { withdrawn },
  );
  expect(over.action).toBe('create');
});

test('an UpdateConfig that waits says what ends its wait', () => {
  expect(decide('v1.38.0+k0s.0')).toMatchObject({
    minor: 'v1.37',
    message: expect.stringContaining(
      'past 1.37 to v1.38.0+k0s.0: the channel would have to offer a release of v1.37 first',
    ),
  });
  expect(decide('v1.36.4+k0s.0', { now: MONDAY + 7_200_000 })).toMatchObject({
    until: MONDAY - 1_800_000 + 7 * 86_400_000,
    message: 'v1.36.4+k0s.0 waits for the window, which opens at 2026-11-30T22:00:00Z',
  });
});

test('times are told in UTC and in the time zone of the windows', () => {
  const inBerlin = { 'upgrade.refit.dev/time-zone': 'Europe/Berlin' };
  const now = MONDAY + 7_200_000;
  const message = (annotations: Record<string, string>): string =>
    decide('v1.36.4+k0s.0', { settings: settingsOf(config({}, annotations)), now, seenMs: now })
      .message;
  expect(message(inBerlin)).toBe(
    'v1.36.4+k0s.0 waits for the window, which opens at 2026-11-30T21:00:00Z (22:00 Europe/Berlin)',
  );
  expect(message({ ...inBerlin, 'upgrade.refit.dev/minimum-release-age': '24h' })).toContain(
    `waits until ${rfc3339(now + 86_400_000)} (`,
  );
});

test('in the lead time the Plan is there before its window, and says so to the leader', () => {
  const from = config({}, { 'upgrade.refit.dev/lead-time': '2h' });
  const settings = settingsOf(from);
  const before = (ms: number): UpdateDecision =>
    decide('v1.36.4+k0s.0', { settings, now: MONDAY - 1_800_000 - ms });
  expect(before(7_200_001)).toMatchObject({
    reason: 'WindowClosed',
    until: MONDAY - 1_800_000 - 7_200_000,
  });
  expect(before(7_200_000).action).toBe('create');
  const { annotations } = makePlan(from, settings, release('v1.36.4+k0s.0')).metadata;
  expect(annotations?.['upgrade.refit.dev/lead-time']).toBe('2h');
});

test('Refit creates a valid Plan that records its UpdateConfig, and the next Plan gets another id', () => {
  const first = planFor('v1.36.4+k0s.0');
  expect(problemsOf(first)).toEqual([]);
  expect(originOf(first)).toEqual({ config: 'u', version: 'v1.36.4+k0s.0' });
  expect(JSON.parse(first.metadata.annotations?.['upgrade.refit.dev/windows'] ?? '')).toEqual([
    { days: ['Monday'], start: '22:00', length: '7200000ms', timeZone: 'UTC' },
  ]);
  const again = makePlan(config(), settingsOf(config()), release('v1.36.4+k0s.0'));
  const after = makePlan(config(), settingsOf(config()), release('v1.36.4+k0s.0'), {
    ...first,
    metadata: { name: 'autopilot', uid: 'p' },
  });
  expect([again.spec.id === first.spec.id, after.spec.id === first.spec.id]).toEqual([true, false]);
});

test('Refit adds version and downloads to the commands of an UpdateConfig', () => {
  const discovery = { static: { nodes: ['c1'] } };
  const commands = [
    { k0supdate: { forceupdate: true, targets: { controllers: { discovery } } } },
    { airgapupdate: { workers: { discovery, limits: { concurrent: 2 } } } },
  ];
  const from = config({ planSpec: { commands } });
  const plan = makePlan(from, settingsOf(from), release('v1.36.4+k0s.0', { airgap: https }));
  expect(plan.spec.commands).toMatchObject([
    {
      k0supdate: {
        forceupdate: true,
        version: 'v1.36.4+k0s.0',
        platforms: { 'linux-amd64': { sha256: SHA } },
      },
    },
    {
      airgapupdate: {
        version: 'v1.36.4+k0s.0',
        platforms: https,
        workers: { limits: { concurrent: 2 } },
      },
    },
  ]);
});

test('if a worker joined after the end of a good Plan, the advice is only to delete the Plan', () => {
  const plan = planFor('v1.36.3+k0s.0', 'Completed');
  const joined = decide('v1.36.3+k0s.0', { plan, kubelets: ['v1.36.3+k0s', 'v1.36.2+k0s'] });
  expect(joined.message).toMatch(
    /a worker still runs v1.36.2\+k0s: delete Plan autopilot; the next Plan/,
  );
  expect(joined.message).not.toContain('planSpec');
  const without = decide('v1.36.4+k0s.0', {
    plan: planFor('v1.36.4+k0s.0', 'Completed'),
    kubelets: [],
  });
  expect(without.message).toContain(
    'check that the targets in spec.planSpec select all controllers',
  );
});

test.each<[string, number | undefined, number | undefined, string | undefined]>([
  ['published long ago', MONDAY - 72 * HOUR, MONDAY, undefined],
  ['published an hour too late', MONDAY - 71 * HOUR, MONDAY, '2026-11-23T23:30:00Z'],
  ['published in the future: its first sight counts', MONDAY + HOUR, MONDAY - 72 * HOUR, undefined],
  ['without a date: its first sight counts', undefined, MONDAY - 71 * HOUR, '2026-11-23T23:30:00Z'],
  ['without a date, seen long ago', undefined, MONDAY - 72 * HOUR, undefined],
  ['seen now', undefined, undefined, '2026-11-26T22:30:00Z'],
])('a minimum age of 72h: %s', (_name, publishedMs, seenMs, until) => {
  const annotations = { 'upgrade.refit.dev/minimum-release-age': '72h' };
  const settings = settingsOf(config({}, annotations));
  const more = publishedMs === undefined ? {} : { publishedMs };
  const { reason, message, ...decision } = decide('v1.36.4+k0s.0', { settings, seenMs }, more);
  expect([reason, decision.until]).toEqual(
    until === undefined ? ['UpdateStarted', undefined] : ['TooNew', Date.parse(until)],
  );
  if (until !== undefined) expect(message).toContain(`v1.36.4+k0s.0 waits until ${until}`);
});
