/** Owns the table of plans that cannot be carried out: each gets one reason that names the field, what was found and what is right. */
import { describe, expect, test } from 'vitest';
import { buildPlan, buildUpdate, listed, SHA256, selected } from '../../../test/builders/plans.ts';
import type { K0sUpdate, Plan } from '../../api/autopilot/plan.ts';
import type { TargetSpec } from '../../api/autopilot/target.ts';
import { problemsOf } from './problems.ts';

const found = (plan: Plan): string[] => problemsOf(plan).map(({ message }) => message);
const withUpdate = (more: Partial<K0sUpdate>): Plan => buildPlan({ commands: [{ k0supdate: buildUpdate(more) }] });
const withWorkers = (workers: TargetSpec): Plan => withUpdate({ targets: { workers } });
const withControllers = (controllers: TargetSpec): Plan => withUpdate({ targets: { controllers } });
const withPlatform = (url: string, sha256?: string): Plan =>
  withUpdate({ platforms: { 'linux-amd64': { url, ...(sha256 === undefined ? {} : { sha256 }) } } });
const named = (name: string): Plan => ({ ...buildPlan(), metadata: { ...buildPlan().metadata, name } });

const AT = 'spec.commands[0].k0supdate';
const URL_WRONG = `${AT}.platforms.linux-amd64.url must be a URL with http or https; found`;
const SHA_WRONG = `${AT}.platforms.linux-amd64.sha256 must be 64 hexadecimal digits, not`;
const VERSION_WRONG = `${AT}.version must be a version such as "v1.36.3+k0s.0"; found`;
const LABELS_WRONG = `${AT}.targets.workers.discovery.selector.labels must be a label selector such as "pool=blue"`;
const FIELDS_WRONG = `discovery.selector.fields must be a field selector such as "metadata.name=w1"`;

test('the documented example has no problem', () => {
  expect(found(buildPlan())).toEqual([]);
});

describe('one problem', () => {
  test.each<[string, Plan, string]>([
    ['another name', named('other'), 'metadata.name must be "autopilot"; found "other"'],
    ['an empty id', buildPlan({ id: '' }), 'spec.id must name this run, such as "2026-11-20"; found ""'],
    ['no command', buildPlan({ commands: [] }), 'spec.commands must hold a command; found []'],
    [
      'an empty command',
      buildPlan({ commands: [{}] }),
      'spec.commands[0] must hold a k0supdate or an airgapupdate; found "no command"',
    ],
    [
      'an image bundle that is nowhere',
      buildPlan({ commands: [{ airgapupdate: { version: 'v1.36.3', platforms: {}, workers: listed('w1') } }] }),
      'spec.commands[0].airgapupdate.platforms must hold a platform such as "linux-amd64"; found {}',
    ],
    [
      'both in one item: the bundle is read too, which the original drops without a word',
      buildPlan({
        commands: [
          { k0supdate: buildUpdate(), airgapupdate: { version: 'v1.36.3', platforms: {}, workers: listed('w1') } },
        ],
      }),
      'spec.commands[0].airgapupdate.platforms must hold a platform such as "linux-amd64"; found {}',
    ],
    [
      'the second command',
      buildPlan({ commands: [{ k0supdate: buildUpdate() }, { k0supdate: buildUpdate({ version: '' }) }] }),
      'spec.commands[1].k0supdate.version must be a version such as "v1.36.3+k0s.0"; found ""',
    ],
    ['a word for a version', withUpdate({ version: 'latest' }), `${VERSION_WRONG} "latest"`],
    ['two numbers', withUpdate({ version: 'v1.36' }), `${VERSION_WRONG} "v1.36"`],
    ['a version with a space', withUpdate({ version: 'v1.36.3 ' }), `${VERSION_WRONG} "v1.36.3 "`],
    [
      'no platform',
      withUpdate({ platforms: {} }),
      `${AT}.platforms must hold a platform such as "linux-amd64"; found {}`,
    ],
    ['no URL', withPlatform(''), `${URL_WRONG} ""`],
    ['a path', withPlatform('/srv/k0s'), `${URL_WRONG} "/srv/k0s"`],
    ['a URL of another kind', withPlatform('file:///srv/k0s'), `${URL_WRONG} "file:///srv/k0s"`],
    ['a URL without host', withPlatform('https://'), `${URL_WRONG} "https://"`],
    ['a URL with one slash', withPlatform('https:/example.com/k0s'), `${URL_WRONG} "https:/example.com/k0s"`],
    ['a URL with a space', withPlatform(' https://example.com'), `${URL_WRONG} " https://example.com"`],
    ['a short sha256', withPlatform('http://d/k0s', 'abc'), `${SHA_WRONG} 3; found "abc"`],
    ['a long sha256', withPlatform('http://d/k0s', `${SHA256}0`), `${SHA_WRONG} 65; found "${SHA256}0"`],
    [
      'a sha256 with other digits',
      withPlatform('http://d/k0s', 'x'.repeat(64)),
      `${SHA_WRONG} 64; found "${'x'.repeat(64)}"`,
    ],
    [
      'no slot for workers: the original waits for ever',
      withWorkers({ ...listed('w1'), limits: { concurrent: 0 } }),
      `${AT}.targets.workers.limits.concurrent must be 1 or more; found 0`,
    ],
    [
      'fewer slots than none',
      withWorkers({ ...listed('w1'), limits: { concurrent: -1 } }),
      `${AT}.targets.workers.limits.concurrent must be 1 or more; found -1`,
    ],
    [
      'no slot for controllers',
      withControllers({ ...listed('c1'), limits: { concurrent: 0 } }),
      `${AT}.targets.controllers.limits.concurrent must be 1 or more; found 0`,
    ],
    [
      'a worker twice',
      withWorkers(listed('w1', 'w2', 'w1')),
      `${AT}.targets.workers.discovery.static.nodes must name every node once, and this one stands twice; found "w1"`,
    ],
    [
      'a controller twice',
      withControllers(listed('c1', 'c1')),
      `${AT}.targets.controllers.discovery.static.nodes must name every node once, and this one stands twice; found "c1"`,
    ],
    [
      'a label selector that does not parse: the original selects every node',
      withWorkers(selected('pool blue')),
      `${LABELS_WRONG} ("pool blue" is no label requirement); found "pool blue"`,
    ],
    [
      'a field selector that does not parse',
      withWorkers(selected(undefined, 'w1')),
      `${AT}.targets.workers.${FIELDS_WRONG} ("w1" is no field requirement); found "w1"`,
    ],
    [
      'a field that cannot be selected by: the original selects nothing and says Completed',
      withWorkers(selected(undefined, 'metadata.nmae=w1')),
      `${AT}.targets.workers.${FIELDS_WRONG} ("metadata.nmae" cannot be selected by, only metadata.name, spec.unschedulable); found "metadata.nmae=w1"`,
    ],
    [
      'a field of nodes asked of controllers',
      withControllers(selected('', 'spec.unschedulable=true')),
      `${AT}.targets.controllers.${FIELDS_WRONG} ("spec.unschedulable" cannot be selected by, only metadata.name); found "spec.unschedulable=true"`,
    ],
    [
      'a selector beside a list that wins over it',
      withWorkers({ discovery: { static: { nodes: ['w1'] }, selector: { labels: '=' } } }),
      `${LABELS_WRONG} ("=" is no label requirement); found "="`,
    ],
  ])('%s', (_name, plan, message) => {
    expect(found(plan)).toEqual([message]);
    expect(problemsOf(plan)[0]?.code).toBe('InvalidPlan');
  });
});

test('all problems are told at once', () => {
  const plan = { ...withUpdate({ version: 'x', platforms: { 'linux-amd64': { url: '' } } }), metadata: { name: 'p' } };
  plan.spec.id = '';
  expect(found(plan).map((message) => message.split(' must ')[0])).toEqual([
    'metadata.name',
    'spec.id',
    `${AT}.version`,
    `${AT}.platforms.linux-amd64.url`,
  ]);
});

describe('no problem', () => {
  test.each<[string, Plan]>([
    ['no sha256: nothing is verified, as in the original', withPlatform('http://d/k0s')],
    ['an empty sha256, which means none', withPlatform('http://d/k0s', '')],
    ['a sha256 in capitals', withPlatform('http://d/k0s', SHA256.toUpperCase())],
    ['HTTP in capitals', withPlatform('HTTP://d/k0s')],
    ['an address and a port', withPlatform('https://[::1]:8443/k0s?x=a&b=c#d')],
    ['a version without v', withUpdate({ version: '1.36.3+k0s.0' })],
    ['a pre-release', withUpdate({ version: 'v1.37.0-alpha.1+k0s.0' })],
    ['the version of a forced reinstallation', withUpdate({ version: 'v0.0.0', forceupdate: true })],
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
    const spec = { commands: Array.from({ length: commands }, () => ({ k0supdate: buildUpdate() })) };
    const status = {
      state: 'SchedulableWait',
      commands: Array.from({ length: entries }, (_, id) => ({ ...entry, id })),
    };
    return buildPlan(spec, status);
  };
  test.each([
    ['as many commands as at its start', running(2, 2), []],
    ['a command more', running(2, 1), ['the number of spec.commands must stay 1, as when the plan started; found 2']],
    ['a command less', running(1, 2), ['the number of spec.commands must stay 2, as when the plan started; found 1']],
  ])('%s', (_name, plan, messages) => {
    expect(found(plan)).toEqual(messages);
  });
});
