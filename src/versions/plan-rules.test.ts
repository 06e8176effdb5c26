/** Tests through which versions a plan may upgrade or downgrade nodes, stage by stage. */
import { expect, test } from 'vitest';
import { judgePlan, type VersionRule, type VersionStage } from './plan-rules.ts';

type Targets = Readonly<Record<string, string | undefined>>;

/** Returns targets by name, with the version that each has before the plan. */
function stage(
  role: VersionStage['role'],
  version: string,
  targets: Targets,
  more: Partial<VersionStage> = {},
): VersionStage {
  const list = Object.entries(targets).map(([name, current]) => ({ name, current }));
  return { role, version, forced: false, targets: list, ...more };
}

const controllers = (
  version: string,
  targets: Targets,
  more?: Partial<VersionStage>,
): VersionStage => stage('controller', version, targets, more);
const workers = (version: string, targets: Targets, more?: Partial<VersionStage>): VersionStage =>
  stage('worker', version, targets, more);
const servers = (versions: Targets): { name: string; version: string | undefined }[] =>
  Object.entries(versions).map(([name, version]) => ({ name, version }));

const FORCED = { forced: true };
const OLD = 'v1.35.4+x.0';
const NOW = 'v1.36.3+x.0';
const NEXT = 'v1.37.1+x.0';
const ALL_NOW = { c1: NOW, c2: NOW, c3: NOW };

test.each<[string, VersionStage[], Targets, string[]]>([
  [
    'the next minor version everywhere',
    [controllers(NEXT, ALL_NOW), workers(NEXT, { w1: NOW })],
    ALL_NOW,
    [],
  ],
  [
    'a newer patch',
    [controllers('v1.36.9+x.0', ALL_NOW), workers('v1.36.9+x.0', { w1: NOW })],
    ALL_NOW,
    [],
  ],
  ['the very same version', [workers(NOW, { w1: NOW })], ALL_NOW, []],
  ['a newer build of it', [workers('v1.36.3+x.10', { w1: 'v1.36.3+x.9' })], ALL_NOW, []],
  [
    'an older build of it',
    [workers('v1.36.3+x.0', { w1: 'v1.36.3+x.2' })],
    ALL_NOW,
    [
      'Downgrade: w1 would go from v1.36.3+x.2 down to v1.36.3+x.0 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'a kubelet that does not tell the number of its build',
    [workers('v1.36.3+x.0', { w1: 'v1.36.3+x' })],
    ALL_NOW,
    [],
  ],
  [
    'a kubelet that tells no build at all',
    [workers('v1.36.3+x.0', { w1: 'v1.36.3' })],
    ALL_NOW,
    [],
  ],
  ['a plan that names no build', [workers('v1.36.3', { w1: 'v1.36.3+x.2' })], ALL_NOW, []],
  [
    'a plan that names no number of a build',
    [workers('v1.36.3+x', { w1: 'v1.36.3+x.2' })],
    ALL_NOW,
    [],
  ],
  [
    'a plan that names no build, of an older patch',
    [workers('v1.36.2', { w1: 'v1.36.3+x.2' })],
    ALL_NOW,
    [
      'Downgrade: w1 would go from v1.36.3+x.2 down to v1.36.2 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'workers of an earlier command that stay behind',
    [workers(NOW, { w1: OLD }), controllers(NEXT, ALL_NOW), workers(NEXT, { w2: NOW })],
    ALL_NOW,
    [],
  ],
  [
    'a build whose name only begins alike',
    [workers('v1.36.3+x.1', { w1: 'v1.36.3+x.10' })],
    ALL_NOW,
    [
      'Downgrade: w1 would go from v1.36.3+x.10 down to v1.36.3+x.1 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'a plan that takes a node back to an older patch version is refused',
    [controllers('v1.36.2+x.0', { c1: NOW, c2: 'v1.36.1+x.0' })],
    ALL_NOW,
    [
      'Downgrade: c1 would go from v1.36.3+x.0 down to v1.36.2+x.0 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'from a release back to a candidate of it',
    [controllers('v1.36.3-rc.1+x.0', { c1: NOW })],
    ALL_NOW,
    [
      'Downgrade: c1 would go from v1.36.3+x.0 down to v1.36.3-rc.1+x.0 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'two minor versions back is a downgrade, and no more',
    [workers('v1.34.1+x.0', { w1: NOW })],
    ALL_NOW,
    [
      'Downgrade: w1 would go from v1.36.3+x.0 down to v1.34.1+x.0 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'a plan that skips a minor version is refused',
    [controllers(NEXT, { c1: OLD, c2: NOW })],
    { c1: OLD, c2: NOW },
    [
      'SkippedMinor: c1 would go from v1.35.4+x.0 past 1.36 to v1.37.1+x.0 (rule SkippedMinor; versions.allow: [SkippedMinor] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'a plan that skips two minor versions is refused',
    [controllers(NEXT, { c1: 'v1.34.0+x.0' })],
    { c1: 'v1.34.0+x.0' },
    [
      'SkippedMinor: c1 would go from v1.34.0+x.0 past 1.35, 1.36 to v1.37.1+x.0 (rule SkippedMinor; versions.allow: [SkippedMinor] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'another major version',
    [controllers('v2.0.0', { c1: NOW })],
    { c1: NOW },
    [
      'SkippedMinor: c1 would go from v1.36.3+x.0 past the rest of its major version to v2.0.0 (rule SkippedMinor; versions.allow: [SkippedMinor] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'one step after the other in one plan',
    [
      controllers(NOW, { c1: OLD }),
      workers(NOW, { w1: OLD }),
      controllers(NEXT, { c1: OLD }),
      workers(NEXT, { w1: OLD }),
    ],
    { c1: OLD },
    [],
  ],
  [
    'the second step leads back',
    [workers(NOW, { w1: OLD }), workers('v1.36.1+x.0', { w1: OLD })],
    ALL_NOW,
    [
      'Downgrade: w1 would go from v1.36.3+x.0 down to v1.36.1+x.0 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'workers before any API server',
    [workers(NEXT, { w1: NOW, w2: NOW })],
    ALL_NOW,
    [
      'KubeletAhead: w1, w2 would have a kubelet of v1.37.1+x.0, newer than the API server of c1 (v1.36.3+x.0), c2 (v1.36.3+x.0), c3 (v1.36.3+x.0) (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'a plan is refused if it upgrades workers while one of three API servers stays older',
    [controllers(NEXT, { c1: NOW, c2: NOW }), workers(NEXT, { w1: NOW })],
    ALL_NOW,
    [
      'KubeletAhead: w1 would have a kubelet of v1.37.1+x.0, newer than the API server of c3 (v1.36.3+x.0) (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'workers in a command before that of the controllers',
    [workers(NEXT, { w1: NOW }), controllers(NEXT, { c1: NOW })],
    { c1: NOW },
    [
      'KubeletAhead: w1 would have a kubelet of v1.37.1+x.0, newer than the API server of c1 (v1.36.3+x.0) (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)',
    ],
  ],
  ['a newer patch than the API servers', [workers('v1.36.9+x.0', { w1: NOW })], ALL_NOW, []],
  ['older than the API servers', [workers(NOW, { w1: OLD })], { c1: NEXT }, []],
  [
    'many at once are one sentence',
    [workers('v1.36.1+x.0', { w1: NOW, w2: NOW, w3: NOW, w4: NOW, w5: NOW, w6: NOW, w7: NOW })],
    ALL_NOW,
    [
      'Downgrade: w1, w2, w3, w4, w5 and 2 more would go from v1.36.3+x.0 down to v1.36.1+x.0 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'a forced command breaks every rule',
    [workers(NEXT, { w1: OLD, w2: 'v1.38.0' }, FORCED)],
    ALL_NOW,
    [],
  ],
  [
    'what comes after a forced command is judged by what that leaves behind',
    [controllers(OLD, { c1: NOW }, FORCED), workers(NOW, { w1: OLD })],
    { c1: NOW },
    [
      'KubeletAhead: w1 would have a kubelet of v1.36.3+x.0, newer than the API server of c1 (v1.35.4+x.0) (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)',
    ],
  ],
])('%s', (_, stages, apiServers, problems) => {
  const verdict = judgePlan(stages, servers(apiServers), new Set());
  expect(verdict.problems.map(({ code, message }) => `${code}: ${message}`)).toEqual(problems);
  expect(verdict.unchecked).toEqual([]);
});

test.each<[string, VersionStage[], VersionRule[], string[]]>([
  [
    'controllers that go back a minor version before their workers',
    [controllers(OLD, { c1: NOW }), workers(OLD, { w1: NOW, w2: OLD })],
    ['Downgrade'],
    [
      'w1 would still have a kubelet of v1.36.3+x.0 when the API server of c1 goes back to v1.35.4+x.0: workers must go back in an earlier command (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)',
    ],
  ],
  [
    'controllers that go back after their workers',
    [workers(OLD, { w1: NOW }), controllers(OLD, { c1: NOW })],
    ['Downgrade'],
    [],
  ],
  [
    'controllers whose policy lets kubelets be newer',
    [controllers(OLD, { c1: NOW }), workers(OLD, { w1: NOW })],
    ['Downgrade', 'KubeletAhead'],
    [],
  ],
  [
    'a forced command of controllers',
    [controllers(OLD, { c1: NOW }, FORCED), workers(OLD, { w1: NOW })],
    ['Downgrade'],
    [],
  ],
])('%s', (_, stages, allow, problems) => {
  const { problems: found } = judgePlan(stages, servers({ c1: NOW }), new Set(allow));
  expect(found.map(({ message }) => message)).toEqual(problems);
});

test('while controllers with kubelets move, they are ahead of the rest; what counts is how they end', () => {
  const both = (names: readonly string[]): VersionStage => ({
    ...controllers(NEXT, {}),
    targets: names.map((name) => ({ name, current: NOW, hasKubelet: true })),
  });
  const judge = (names: readonly string[]) =>
    judgePlan([both(names)], servers({ c1: NOW, c2: NOW }), new Set());
  expect(judge(['c1', 'c2']).problems).toEqual([]);
  expect(judge(['c1']).problems.map(({ code }) => code)).toEqual(['KubeletAhead']);
});

test('a downgrade that would also leave kubelets ahead is told as a downgrade first', () => {
  const stages = [controllers(OLD, { c1: NOW }), workers(OLD, { w1: NOW })];
  const { problems } = judgePlan(stages, servers({ c1: NOW }), new Set());
  expect(problems.map(({ code }) => code)).toEqual(['Downgrade', 'KubeletAhead']);
});

test.each<[VersionRule, VersionStage[]]>([
  ['SkippedMinor', [controllers(NEXT, { c1: OLD })]],
  ['Downgrade', [workers(OLD, { w1: NOW })]],
  ['KubeletAhead', [workers(NEXT, { w1: NOW })]],
])('a policy lifts the rule %s only if it names exactly that rule', (rule, stages) => {
  const others = (['SkippedMinor', 'Downgrade', 'KubeletAhead'] as const).filter(
    (each) => each !== rule,
  );
  const judge = (allow: readonly VersionRule[]) =>
    judgePlan(stages, servers({ c1: NOW }), new Set(allow)).problems;
  expect(judge([rule])).toEqual([]);
  expect(judge(others).map(({ code }) => code)).toEqual([rule]);
});

test.each<[string, VersionStage[], Targets, string[]]>([
  [
    'a node that does not tell its version',
    [workers(NOW, { w1: undefined, w2: OLD })],
    ALL_NOW,
    ['w1: its version is unknown'],
  ],
  [
    'a version that is none',
    [workers(NOW, { w1: 'unknown' })],
    ALL_NOW,
    ['w1: its version unknown is unreadable'],
  ],
  [
    'a wanted version that is none',
    [workers('latest', { w1: OLD })],
    ALL_NOW,
    ['latest cannot be compared with other versions'],
  ],
  [
    'API servers that do not tell',
    [controllers(NEXT, { c1: NOW }), workers(NEXT, { w1: NOW })],
    { c1: NOW, c2: undefined },
    ['c2: the version of its API server is unknown'],
  ],
  [
    'API servers that nothing depends on',
    [controllers(NEXT, { c1: NOW })],
    { c1: NOW, c2: undefined },
    [],
  ],
  [
    'told once, however many stages there are',
    [workers(NOW, { w1: 'a' }), workers(NOW, { w2: 'a' })],
    { c1: NOW, c2: undefined },
    ['w1, w2: its version a is unreadable', 'c2: the version of its API server is unknown'],
  ],
])('what cannot be judged passes, and is told: %s', (_, stages, apiServers, unchecked) => {
  const verdict = judgePlan(stages, servers(apiServers), new Set());
  expect(verdict).toEqual({ problems: [], unchecked });
});

test('fifteen thousand targets are judged in one go', () => {
  const targets = Object.fromEntries(
    Array.from({ length: 15_000 }, (_, index) => [`w${index}`, index % 2 ? NOW : undefined]),
  );
  const { problems, unchecked } = judgePlan([workers(OLD, targets)], servers(ALL_NOW), new Set());
  expect(problems.map(({ message }) => message)).toEqual([
    `w1, w3, w5, w7, w9 and 7495 more would go from ${NOW} down to ${OLD} (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)`,
  ]);
  expect(unchecked).toEqual(['w0, w2, w4, w6, w8 and 7495 more: its version is unknown']);
});
