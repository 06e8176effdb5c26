/** Proves the message for each invalid Plan: the field, what was found, and what to use. */
import { describe, expect, test } from 'vitest';
import {
  buildPlan,
  buildUpdate,
  listed,
  SHA256,
  selected,
} from '../../../../test/support/builders/plans.ts';
import type { K0sUpdate, Plan, TargetSpec } from '../../../api/autopilot/plan.ts';
import { problemsOf, subjectOf } from './problems.ts';

const found = (plan: Plan): string[] => problemsOf(plan).map(({ message }) => message);
const withUpdate = (more: Partial<K0sUpdate>): Plan =>
  buildPlan({ commands: [{ k0supdate: buildUpdate(more) }] });
const withWorkers = (workers: TargetSpec): Plan => withUpdate({ targets: { workers } });
const withControllers = (controllers: TargetSpec): Plan => withUpdate({ targets: { controllers } });
const withPlatform = (url: string, sha256?: string): Plan =>
  withUpdate({
    platforms: { 'linux-amd64': { url, ...(sha256 === undefined ? {} : { sha256 }) } },
  });
const named = (name: string): Plan => ({
  ...buildPlan(),
  metadata: { ...buildPlan().metadata, name },
});

const AT = 'spec.commands[0].k0supdate';
const NO_VERSION = 'is not a version; use for example v1.36.3+k0s.0';
const NO_URL = 'is not a URL with http or https; use for example https://example.com/k0s';
const NO_SHA = 'is not a SHA-256; use 64 hexadecimal digits, not';
const LABELS = `${AT}.targets.workers.discovery.selector.labels`;
const FIELDS = 'discovery.selector.fields';

test('the documented example has no problem', () => {
  expect(found(buildPlan())).toEqual([]);
});

describe('one problem', () => {
  test.each<[string, Plan, string]>([
    ['another name', named('other'), 'metadata.name: "other" is not supported; use "autopilot"'],
    ['an empty id', buildPlan({ id: '' }), 'spec.id: "" is empty; use for example 2026-11-20'],
    [
      'an id for which no Node has room',
      buildPlan({ id: 'x'.repeat(10_001) }),
      'spec.id: 10001 is too many characters; use at most 10000',
    ],
    [
      'a plan without commands is refused, and the message asks for a command',
      buildPlan({ commands: [] }),
      'spec.commands: [] is empty; add a command',
    ],
    [
      'an empty command is refused, and the message names the two possible updates',
      buildPlan({ commands: [{}] }),
      'spec.commands[0]: {} has no update; add k0supdate or airgapupdate',
    ],
    [
      'an image bundle that is nowhere',
      buildPlan({
        commands: [{ airgapupdate: { version: 'v1.36.3', platforms: {}, workers: listed('w1') } }],
      }),
      'spec.commands[0].airgapupdate.platforms: {} is empty; add a platform, for example linux-amd64',
    ],
    [
      'both in one item: the bundle is read too, which the original drops without a word',
      buildPlan({
        commands: [
          {
            k0supdate: buildUpdate(),
            airgapupdate: { version: 'v1.36.3', platforms: {}, workers: listed('w1') },
          },
        ],
      }),
      'spec.commands[0].airgapupdate.platforms: {} is empty; add a platform, for example linux-amd64',
    ],
    [
      'the second command',
      buildPlan({
        commands: [{ k0supdate: buildUpdate() }, { k0supdate: buildUpdate({ version: '' }) }],
      }),
      'spec.commands[1].k0supdate.version: "" is not a version; use for example v1.36.3+k0s.0',
    ],
    [
      'a password in a URL that is none',
      withPlatform('ftp://me:secret@c/k0s?sig=1'),
      `${AT}.platforms.linux-amd64.url: "ftp://***@c/k0s?***" ${NO_URL}`,
    ],
    [
      'a word for a version',
      withUpdate({ version: 'latest' }),
      `${AT}.version: "latest" ${NO_VERSION}`,
    ],
    ['two numbers', withUpdate({ version: 'v1.36' }), `${AT}.version: "v1.36" ${NO_VERSION}`],
    [
      'a version with a space',
      withUpdate({ version: 'v1.36.3 ' }),
      `${AT}.version: "v1.36.3 " ${NO_VERSION}`,
    ],
    [
      'no platform',
      withUpdate({ platforms: {} }),
      `${AT}.platforms: {} is empty; add a platform, for example linux-amd64`,
    ],
    ['no URL', withPlatform(''), `${AT}.platforms.linux-amd64.url: "" ${NO_URL}`],
    ['a path', withPlatform('/srv/k0s'), `${AT}.platforms.linux-amd64.url: "/srv/k0s" ${NO_URL}`],
    [
      'a URL of another kind',
      withPlatform('file:///srv/k0s'),
      `${AT}.platforms.linux-amd64.url: "file:///srv/k0s" ${NO_URL}`,
    ],
    [
      'a URL without host',
      withPlatform('https://'),
      `${AT}.platforms.linux-amd64.url: "https://" ${NO_URL}`,
    ],
    [
      'a URL with one slash',
      withPlatform('https:/example.com/k0s'),
      `${AT}.platforms.linux-amd64.url: "https:/example.com/k0s" ${NO_URL}`,
    ],
    [
      'a URL with a space',
      withPlatform(' https://example.com'),
      `${AT}.platforms.linux-amd64.url: " https://example.com" ${NO_URL}`,
    ],
    [
      'a short sha256',
      withPlatform('http://d/k0s', 'abc'),
      `${AT}.platforms.linux-amd64.sha256: "abc" ${NO_SHA} 3`,
    ],
    [
      'a long sha256',
      withPlatform('http://d/k0s', `${SHA256}0`),
      `${AT}.platforms.linux-amd64.sha256: "${SHA256}0" ${NO_SHA} 65`,
    ],
    [
      'a sha256 with other digits',
      withPlatform('http://d/k0s', 'x'.repeat(64)),
      `${AT}.platforms.linux-amd64.sha256: "${'x'.repeat(64)}" ${NO_SHA} 64`,
    ],
    [
      'no slot for workers: the original waits for ever',
      withWorkers({ ...listed('w1'), limits: { concurrent: 0 } }),
      `${AT}.targets.workers.limits.concurrent: 0 is less than 1; use 1 or more`,
    ],
    [
      'fewer slots than none',
      withWorkers({ ...listed('w1'), limits: { concurrent: -1 } }),
      `${AT}.targets.workers.limits.concurrent: -1 is less than 1; use 1 or more`,
    ],
    [
      'no slot for controllers',
      withControllers({ ...listed('c1'), limits: { concurrent: 0 } }),
      `${AT}.targets.controllers.limits.concurrent: 0 is less than 1; use 1 or more`,
    ],
    [
      'a worker twice',
      withWorkers(listed('w1', 'w2', 'w1')),
      `${AT}.targets.workers.discovery.static.nodes: "w1" is listed twice; list each node once`,
    ],
    [
      'a controller twice',
      withControllers(listed('c1', 'c1')),
      `${AT}.targets.controllers.discovery.static.nodes: "c1" is listed twice; list each node once`,
    ],
    [
      'a label selector that does not parse: the original selects every node',
      withWorkers(selected('pool blue')),
      `${LABELS}: "pool blue" is not a label selector ("pool blue" is not a label requirement); use for example pool=blue`,
    ],
    [
      'a field selector that does not parse',
      withWorkers(selected(undefined, 'w1')),
      `${AT}.targets.workers.${FIELDS}: "w1" is not a field selector ("w1" is not a field requirement); use for example metadata.name=w1`,
    ],
    [
      'a field that cannot be selected by: the original selects nothing and says Completed',
      withWorkers(selected(undefined, 'metadata.nmae=w1')),
      `${AT}.targets.workers.${FIELDS}: "metadata.nmae=w1" is not a field selector ("metadata.nmae" is not a selectable field; use metadata.name, spec.unschedulable); use for example metadata.name=w1`,
    ],
    [
      'the field selector spec.unschedulable is refused for controllers',
      withControllers(selected('', 'spec.unschedulable=true')),
      `${AT}.targets.controllers.${FIELDS}: "spec.unschedulable=true" is not a field selector ("spec.unschedulable" is not a selectable field; use metadata.name); use for example metadata.name=w1`,
    ],
    [
      'a selector together with a list, which replaces it',
      withWorkers({ discovery: { static: { nodes: ['w1'] }, selector: { labels: '=' } } }),
      `${LABELS}: "=" is not a label selector ("=" is not a label requirement); use for example pool=blue`,
    ],
    [
      'a name that no node can have',
      withWorkers(listed('w'.repeat(254))),
      `${AT}.targets.workers.discovery.static.nodes: "${'w'.repeat(254)}" has 254 characters, so it names no node; use at most 253`,
    ],
    [
      'a selector that takes long to read',
      withWorkers(selected(','.repeat(70_000))),
      `${LABELS}: 70000 is too many characters; use at most 65536`,
    ],
    [
      'a value that has no room in the status',
      withUpdate({ version: 'v'.repeat(60_000) }),
      `${AT}.version: "${'v'.repeat(500)}…" is not a version; use for example v1.36.3+k0s.0`,
    ],
  ])('%s', (_name, plan, message) => {
    expect(found(plan)).toEqual([message]);
    expect(problemsOf(plan)[0]?.code).toBe('InvalidPlan');
  });
});

describe('a plan that leaves no room for its status', () => {
  const namesOf = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => String(index).padStart(249, 'w'));

  test('is refused, in bytes: names, annotations, and letters of several bytes', () => {
    const many = withWorkers(listed(...namesOf(5_900)));
    const metadata = { ...many.metadata, annotations: { note: 'é'.repeat(500_000) } };
    const problem = expect.stringMatching(
      /^spec\.commands: \d+ bytes of commands, together with the metadata, leave no room for a status in the object; make it \d+ bytes smaller: use a selector/,
    );
    expect(found(many)).toEqual([problem]);
    expect(found({ ...withWorkers(listed(...namesOf(2_000))), metadata })).toEqual([problem]);
    expect(found(withWorkers(listed(...namesOf(5_000))))).toEqual([]);
  });

  test('nor one of too many commands, each of which has an entry there', () => {
    const { spec, ...rest } = buildPlan();
    const plan = { ...rest, spec: { ...spec, commands: Array(101).fill(spec.commands[0]) } };
    expect(found(plan)).toEqual(['spec.commands: 101 is too many commands; use at most 100']);
  });
});

describe('what the original accepts and Refit limits', () => {
  const { spec } = buildPlan();
  const BEYOND: readonly (readonly [string, Plan])[] = [
    ['commands', buildPlan({ commands: Array(101).fill(spec.commands[0]) })],
    ['the id', buildPlan({ id: 'x'.repeat(10_001) })],
    ['a selector', withWorkers(selected('a,'.repeat(40_000)))],
    ['a name', withWorkers(listed('w'.repeat(254)))],
    [
      'the whole of it',
      withWorkers(listed(...Array.from({ length: 99_000 }, (_, i) => `worker-${i}-0`))),
    ],
  ];

  test.each(BEYOND)('too long is %s: a new plan is refused', (_what, plan) => {
    expect(found(plan)).toHaveLength(1);
  });

  test.each(BEYOND)('too long is %s: a plan that runs or has ended goes on', (_what, plan) => {
    const commands = plan.spec.commands.map((_, id) => ({ id, state: 'SchedulableWait' }));
    for (const state of ['Schedulable', 'SchedulableWait', 'Completed', 'ApplyFailed'])
      expect(found({ ...plan, status: { state, commands } })).toEqual([]);
  });
});

test('all problems are told at once', () => {
  const plan = {
    ...withUpdate({ version: 'x', platforms: { 'linux-amd64': { url: '' } } }),
    metadata: { name: 'p' },
  };
  plan.spec.id = '';
  expect(found(plan).map((message) => message.split(': ')[0])).toEqual([
    'metadata.name',
    'spec.id',
    `${AT}.version`,
    `${AT}.platforms.linux-amd64.url`,
  ]);
});

test.each([
  ['v1.33.1-k0s.0', 'v1.33.1+k0s.0'],
  ['v1.33.1-rc.1-k0s.0', 'v1.33.1-rc.1+k0s.0'],
  ['v1.33.1-k0s', 'v1.33.1+k0s'],
])('a version with the dash of an image tag: no node reports %s', (version, right) => {
  expect(found(withUpdate({ version }))).toEqual([
    `${AT}.version: "${version}" is not a version that a node can report; use ${right}`,
  ]);
});

test('a version without v: no node reports one', () => {
  expect(found(withUpdate({ version: '1.36.3+k0s.0' }))).toEqual([
    `${AT}.version: "1.36.3+k0s.0" is not a version that a node can report; use v1.36.3+k0s.0`,
  ]);
});

test.each([
  ['v1.36.3', 'v1.36.3+k0s.0'],
  ['1.36.3', 'v1.36.3+k0s.0'],
  ['v1.37.0-rc.1', 'v1.37.0-rc.1+k0s.0'],
])('a version without a build: no node of k0s reports %s', (version, right) => {
  expect(found(withUpdate({ version }))).toEqual([
    `${AT}.version: "${version}" has no build, so no node can report it; use the whole version of the release, for example ${right}`,
  ]);
});

test('a Plan that runs keeps its version without a build, because its leader accepted it', () => {
  const plan = withUpdate({ version: 'v1.36.3' });
  const running = {
    ...plan,
    status: { state: 'SchedulableWait', commands: [] },
  } as unknown as Plan;
  expect(found(running)).toEqual([]);
});

describe('no problem', () => {
  test.each<[string, Plan]>([
    ['no sha256: nothing is verified, as in the original', withPlatform('http://d/k0s')],
    ['an empty sha256, which means none', withPlatform('http://d/k0s', '')],
    ['a sha256 in capitals', withPlatform('http://d/k0s', SHA256.toUpperCase())],
    ['HTTP in capitals', withPlatform('HTTP://d/k0s')],
    ['an address and a port', withPlatform('https://[::1]:8443/k0s?x=a&b=c#d')],
    ['a pre-release', withUpdate({ version: 'v1.37.0-alpha.1+k0s.0' })],
    [
      'the version of a forced reinstallation',
      withUpdate({ version: 'v0.0.0', forceupdate: true }),
    ],
    ['no limits', withWorkers(listed('w1'))],
    ['an empty list', withWorkers(listed())],
    ['an empty selector, which selects all', withWorkers(selected())],
    ['neither list nor selector', withWorkers({ discovery: {} })],
    ['no targets at all', withUpdate({ targets: {} })],
    [
      'the same node in two commands',
      buildPlan({ commands: [{ k0supdate: buildUpdate() }, { k0supdate: buildUpdate() }] }),
    ],
    [
      'the same name as controller and as worker',
      withUpdate({ targets: { controllers: listed('n1'), workers: listed('n1') } }),
    ],
  ])('%s', (_name, plan) => {
    expect(found(plan)).toEqual([]);
  });
});

describe('a plan that was changed while it ran', () => {
  const entry = { id: 0, state: 'SchedulableWait' };
  const running = (commands: number, entries: number): Plan => {
    const spec = {
      commands: Array.from({ length: commands }, () => ({ k0supdate: buildUpdate() })),
    };
    const status = {
      state: 'SchedulableWait',
      commands: Array.from({ length: entries }, (_, id) => ({ ...entry, id })),
    };
    return buildPlan(spec, status);
  };
  test.each([
    ['as many commands as at its start', running(2, 2), []],
    [
      'a command more',
      running(2, 1),
      [
        'spec.commands: 2 is the number of commands, but the plan started with 1; restore them, or create a new Plan',
      ],
    ],
    [
      'a command less',
      running(1, 2),
      [
        'spec.commands: 1 is the number of commands, but the plan started with 2; restore them, or create a new Plan',
      ],
    ],
  ])('%s', (_name, plan, messages) => {
    expect(found(plan)).toEqual(messages);
  });
});

test('a refusal that shows a whole long value is about the same as one that shows its beginning', () => {
  const field = 'spec.commands[0].k0supdate.version';
  const whole = `${field}: "${'v'.repeat(600)}" is not a version`;
  const shortened = `${field}: "${'v'.repeat(500)}…" is not a version`;
  expect(subjectOf(whole)).toBe(subjectOf(shortened));
  expect(subjectOf(`${field}: "v1" is not a version`)).toBe(`${field}: "v1"`);
  expect(subjectOf('spec.commands: 101 is too many commands')).toBe('spec.commands: 101');
});
