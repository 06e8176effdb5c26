/** Proves which version and which problem a Plan resolves to, and how the digest writes the fields of the Plan. */
import { describe, expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { Secret } from '../../../kube/resources.ts';
import {
  conditionsOf,
  digestOf,
  isRecorded,
  latestHash,
  NOT_READY,
  resolveLatest,
  unknownDigestPaths,
} from './latest.ts';
import { isZero } from './stamps.ts';

const RECORDED = { latestVersion: 'v1.0.0', latestHash: 'h0' };

function planOf(
  spec: Partial<CattleSpec>,
  conditions: NonNullable<CattlePlan['status']>['conditions'] = [],
): CattlePlan {
  return { ...buildCattlePlan('p', spec), status: { ...RECORDED, conditions } };
}

const secret = (name: string): Secret => ({ metadata: { name }, data: { [name]: 'YQ==' } });
const noSecret = (): undefined => undefined;

describe('a problem, with which the recorded version and hash stay', () => {
  const channel = { version: '', channel: 'https://example.com/stable' };
  const answered = (status: string, reason: string, message: string) => [
    { type: 'LatestResolved', status, reason, message },
  ];
  const secrets = [
    { name: 'a', path: 'a' },
    { name: 'b', path: 'b' },
  ];
  test.each<[string, CattlePlan, string, string]>([
    [
      'both names of one option',
      planOf({ drain: { deleteEmptydirData: false, deleteLocalData: false } }),
      'InvalidPlan',
      'spec.drain cannot specify both deleteEmptydirData and deleteLocalData',
    ],
    [
      'a rest that is no duration',
      planOf({ postCompleteDelay: 'soon' }),
      'InvalidPlan',
      'spec.postCompleteDelay is invalid, "soon" is not a duration; use for example 90s or 1h30m',
    ],
    [
      'a rest that is too long',
      planOf({ postCompleteDelay: '9999999.5h' }),
      'InvalidPlan',
      'spec.postCompleteDelay is invalid, "9999999.5h" is longer than 2562047h, the longest duration; use for example 90s or 1h30m',
    ],
    [
      'a rest below zero',
      planOf({ postCompleteDelay: '-1s' }),
      'InvalidPlan',
      'spec.postCompleteDelay is negative',
    ],
    [
      'a window without days',
      planOf({ window: { startTime: '1:00', endTime: '2:00' } }),
      'InvalidPlan',
      'spec.window is invalid, days is empty, so the window never opens; use for example ["sa", "su"]',
    ],
    [
      'Secrets that do not exist',
      planOf({ secrets }),
      'InvalidPlan',
      'secrets "a" not found, secrets "b" not found',
    ],
    [
      'neither version nor channel',
      planOf({ version: '' }),
      'VersionUnknown',
      'cannot resolve plan: missing channel and version',
    ],
    [
      'a channel that was not asked yet',
      planOf(channel),
      'ChannelUnanswered',
      'waiting for the version of the channel',
    ],
    [
      'a channel that failed',
      planOf(channel, answered('False', 'Error', 'no route')),
      'ChannelUnanswered',
      'waiting for the version of the channel: no route',
    ],
    [
      'a channel in place of the version that is recorded',
      planOf(channel, answered('True', 'Version', '')),
      'ChannelUnanswered',
      'waiting for the version of the channel',
    ],
    [
      'a channel that answers nothing',
      {
        ...planOf(channel),
        status: { latestVersion: '', conditions: answered('True', 'Channel', '') },
      },
      'InvalidPlan',
      'the version is invalid, it is empty',
    ],
  ])('%s', (_name, plan, code, message) => {
    const { version, hash, problems } = resolveLatest(plan, noSecret);
    expect(problems).toEqual([{ code, message }]);
    const { latestVersion, latestHash: recordedHash = '' } = plan.status ?? {};
    expect([version, hash]).toEqual([latestVersion, recordedHash]);
  });

  test('a version with a digest is told where the digest belongs', () => {
    const version = `v1.6.2@sha256:${'0'.repeat(64)}`;
    const { problems } = resolveLatest(buildCattlePlan('p', { version }), noSecret);
    const [{ message } = { message: '' }] = problems;
    expect(message).toContain('the version is invalid');
    expect(message).toContain(
      'write the digest behind the name of the image in spec.upgrade.image',
    );
    expect(message).toContain('upgrade.cattle.io/digest: spec.upgrade.image');
  });

  test('nothing is recorded of a new Plan', () => {
    const { version, hash } = resolveLatest(buildCattlePlan('p', { version: '' }), noSecret);
    expect([version, hash]).toEqual(['', '']);
  });
});

describe('the version', () => {
  test.each<[string, Partial<CattleSpec>, string]>([
    ['of the channel is that of its answer', { version: '', channel: 'https://c' }, 'v1.0.0'],
    ['of the Plan counts before its channel', { channel: 'https://c' }, 'v1.2.3'],
    ['has no +', { version: 'v1.2.3+k3s1' }, 'v1.2.3-k3s1'],
  ])('%s', (_name, spec, version) => {
    const plan = planOf(spec, [{ type: 'LatestResolved', status: 'True', reason: 'Channel' }]);
    const hash = latestHash(plan, version, []);
    expect(resolveLatest(plan, noSecret)).toEqual({ version, hash, problems: [] });
  });
});

describe('a Plan that only Refit refuses, because no Job can work', () => {
  const upgrade = { image: '' };
  const PROBLEM =
    'spec.upgrade.image: "" is not the name of an image; use for example rancher/k3s-upgrade';
  const REFUSED = `Validated False Error ${PROBLEM}`;
  const saidOf = (plan: CattlePlan): string[] =>
    conditionsOf(plan, resolveLatest(plan, noSecret).problems).map(
      ({ type, status, reason, message }) => [type, status, reason, message].join(' '),
    );

  test('has its version and hash, as in the original', () => {
    const plan = planOf({ upgrade });
    const { version, hash, problems } = resolveLatest(plan, noSecret);
    expect([version, hash]).toEqual(['v1.2.3', latestHash(plan, 'v1.2.3', [])]);
    expect(problems).toEqual([{ code: 'InvalidPlan', message: PROBLEM }]);
    expect(saidOf(plan)).toEqual([REFUSED, 'LatestResolved True Version ']);
  });

  test('keeps the recorded version while a node has a slot for it', () => {
    const { status, ...rest } = planOf({ upgrade });
    const plan = { ...rest, status: { ...status, applying: ['w1'] } };
    const { version, hash } = resolveLatest(plan, noSecret);
    expect([version, hash]).toEqual(['v1.0.0', 'h0']);
  });

  test('says that it has neither version nor channel', () => {
    const unresolved =
      'LatestResolved False Error cannot resolve plan: missing channel and version';
    expect(saidOf(planOf({ version: '', upgrade }))).toEqual([REFUSED, unresolved]);
  });

  test('has no resolved version if the original refuses it, too', () => {
    expect(saidOf(planOf({ version: 'v1:2', upgrade }))).toEqual([
      expect.stringContaining(`${REFUSED}. the version is invalid`),
    ]);
  });
});

describe('Secrets', () => {
  const secrets = [
    { name: 'a', path: 'a' },
    { name: 'ignored', path: 'i', ignoreUpdates: true },
  ];
  const missing = (status: string, message: string) => [{ type: 'Validated', status, message }];
  const NOT_FOUND = 'secrets "a" not found';
  const FORBIDDEN =
    'secrets "a" is forbidden: User "u" cannot get resource "secrets" in API group "" in the namespace "n"';

  test('that exist count in the hash', () => {
    const plan = planOf({ secrets });
    const { hash, problems } = resolveLatest(plan, secret);
    expect(problems).toEqual([]);
    expect(hash).toBe(latestHash(plan, 'v1.2.3', [secret('a')]));
    expect(hash).not.toBe(latestHash(plan, 'v1.2.3', []));
  });

  test('that a command cannot read leave the recorded hash', () => {
    const resolved = resolveLatest(planOf({ secrets }), undefined);
    expect(resolved).toEqual({ version: 'v1.2.3', hash: 'h0', problems: [] });
  });

  test.each<[string, CattlePlan, string[]]>([
    ['is repeated', planOf({ secrets }, missing('False', NOT_FOUND)), [NOT_FOUND]],
    ['is over', planOf({ secrets }, missing('True', NOT_FOUND)), []],
    ['is another problem', planOf({ secrets }, missing('False', 'the version is invalid')), []],
    ['is of Secrets that the Plan names no more', planOf({}, missing('False', NOT_FOUND)), []],
    [
      'is repeated of each Secret that the Plan names still',
      planOf({ secrets }, missing('False', `secrets "c" not found, ${NOT_FOUND}`)),
      [NOT_FOUND],
    ],
    [
      'is repeated, whatever is wrong with the Secret',
      planOf({ secrets }, missing('False', FORBIDDEN)),
      [FORBIDDEN],
    ],
    [
      'is of another Secret that is forbidden',
      planOf({ secrets }, missing('False', FORBIDDEN.replace('"a"', '"b"'))),
      [],
    ],
  ])('what the leader recorded %s, for a command that cannot read them', (_name, plan, told) => {
    const { problems } = resolveLatest(plan, undefined);
    expect(problems.map(({ message }) => message)).toEqual(told);
  });

  test('that the leader finds do not repeat what it recorded before', () => {
    const plan = planOf({ secrets }, missing('False', NOT_FOUND));
    expect(resolveLatest(plan, secret).problems).toEqual([]);
  });
});

describe('the digest writes', () => {
  test.each<[string, Partial<CattleSpec>, string, string]>([
    ['a text without the spaces around it', { upgrade: { image: ' i ' } }, 'upgrade.image', 'i'],
    ['a number', { concurrency: 3 }, 'concurrency', '3'],
    ['true', { cordon: true }, 'cordon', 'true'],
    ['nothing for a field that is not set', {}, 'drain.timeout', ''],
    ['nothing for zero, which Go omits', { concurrency: 0 }, 'concurrency', ''],
    ['zero where Go has a pointer', { drain: { timeout: 0 } }, 'drain', 'map[timeout:0]'],
    [
      'a map by the order of keys',
      { nodeSelector: { matchLabels: { b: '2', a: '' } } },
      'nodeSelector.matchLabels',
      'map[a: b:2]',
    ],
    [
      'the first item of a list',
      { upgrade: { image: 'i', command: ['sh', '-c'] } },
      'upgrade.command',
      'sh',
    ],
    ['nothing for an empty list', { upgrade: { image: 'i', command: [] } }, 'upgrade.command', ''],
    [
      'all items of a list in a map',
      { upgrade: { image: 'i', command: ['sh', '-c'] } },
      'upgrade',
      'map[command:[sh -c] image:i]',
    ],
    ['a rest as Go writes it', { postCompleteDelay: '90s' }, 'postCompleteDelay', '1m30s'],
    [
      'a rest that is no duration as it is',
      { postCompleteDelay: 'soon' },
      'postCompleteDelay',
      'soon',
    ],
    [
      'items without their zero values',
      { tolerations: [{ key: 'k', value: '' }] },
      'tolerations',
      'map[key:k]',
    ],
  ])('%s', (_name, spec, path, text) => {
    expect(digestOf(buildCattlePlan('p', spec), `spec.${path}`)).toBe(text);
  });

  test('null as Go prints it', () => {
    const plan = buildCattlePlan('p');
    const tolerations = [{ list: [null] }];
    const written = { ...plan, spec: { ...plan.spec, tolerations } } as unknown as CattlePlan;
    expect(digestOf(written, 'spec.tolerations')).toBe('map[list:[<nil>]]');
  });

  test('several fields one after the other, also of the metadata', () => {
    expect(digestOf(buildCattlePlan('p'), 'metadata.name,spec.version')).toBe('pv1.2.3');
  });

  test('nothing of the spec of a Plan without one', () => {
    const { spec: _, ...plan } = buildCattlePlan('p');
    expect(digestOf(plan, 'spec.version')).toBe('');
  });
});

test('paths of the digest that name no field are told', () => {
  const plan = buildCattlePlan('p');
  const annotations = { 'upgrade.cattle.io/digest': 'spec.version,spec.versoin' };
  const digesting = { ...plan, metadata: { ...plan.metadata, annotations } };
  expect(unknownDigestPaths(digesting)).toEqual(['spec.versoin']);
  expect(unknownDigestPaths(plan)).toEqual([]);
});

test.each([[[]], [{}], [undefined], [null], [''], [0], [false]])('%j is a zero value', (value) => {
  expect(isZero(value)).toBe(true);
});

test.each([[['']], [{ a: undefined }], ['0'], [1], [true]])('%j is no zero value', (value) => {
  expect(isZero(value)).toBe(false);
});

describe('the conditions', () => {
  const problem = (code: 'InvalidPlan' | 'VersionUnknown') => ({ code, message: 'why' });
  const VALID = 'Validated True PlanIsValid ';
  test.each<[string, CattlePlan, Parameters<typeof conditionsOf>[1], string[]]>([
    ['of a version', planOf({}), [], [VALID, 'LatestResolved True Version ']],
    ['of a channel', planOf({ version: '', channel: 'https://c' }), [], [VALID]],
    ['of a problem', planOf({}), [problem('InvalidPlan')], ['Validated False Error why']],
    [
      'of neither version nor channel',
      planOf({ version: '' }),
      [problem('VersionUnknown')],
      [VALID, 'LatestResolved False Error cannot resolve plan: missing channel and version'],
    ],
  ])('%s', (_name, plan, problems, told) => {
    const conditions = conditionsOf(plan, problems);
    expect(
      conditions.map(({ type, status, reason, message }) =>
        [type, status, reason, message].join(' '),
      ),
    ).toEqual(told);
  });

  test('are recorded once the status has all of them, the version and the hash', () => {
    const latest = { version: 'v1.0.0', hash: 'h0', problems: [] };
    const wanted = conditionsOf(planOf({}), []);
    const plan = planOf({}, wanted);
    expect(isRecorded(plan, latest)).toBe(true);
    expect(isRecorded(planOf({}, wanted.slice(1)), latest)).toBe(false);
    expect(isRecorded(plan, { ...latest, version: 'v2' })).toBe(false);
    expect(isRecorded(plan, { ...latest, hash: 'h1' })).toBe(false);
    expect(isRecorded(buildCattlePlan('p'), latest)).toBe(false);
  });

  test('of a problem are recorded only once the Plan is not ready', () => {
    const problems = [problem('InvalidPlan')];
    const wanted = conditionsOf(planOf({}), problems);
    const latest = { version: 'v1.0.0', hash: 'h0', problems };
    expect(isRecorded(planOf({}, wanted), latest)).toBe(false);
    expect(isRecorded(planOf({}, [...wanted, NOT_READY]), latest)).toBe(true);
  });
});
