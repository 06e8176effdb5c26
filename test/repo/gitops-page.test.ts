/** Tests that the health checks in docs/guides/gitops.md agree with the states and conditions that Refit writes. */
import { spawnSync } from 'node:child_process';
import { evaluate } from '@marcbachmann/cel-js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { phaseOfPlan } from '../../src/dialects/autopilot/plan/states.ts';
import { because, type Reason } from '../../src/engine/model/reasons.ts';
import type { PlanPhase } from '../../src/engine/model/shown-phases.ts';
import {
  CONDITIONS_ANNOTATION,
  MESSAGE_ANNOTATION,
} from '../../src/engine/model/written-conditions.ts';
import { conditionsOf } from '../../src/engine/report/conditions.ts';
import { T0 } from '../support/clock/times.ts';
import { testUnless, whyNoProgram } from '../support/left-out.ts';
import { filesOf } from './tree.ts';

const PAGE = filesOf('docs/guides/gitops.md')[0]?.text ?? '';
const [ARGO = '', FLUX = ''] = [...PAGE.matchAll(/```yaml\n(.*?)```/gs)].map(
  ([, text = '']) => text,
);

interface FluxCheck {
  readonly apiVersion: string;
  readonly kind: string;
  readonly current: string;
  readonly failed: string;
}

const argo = (parse(ARGO) as { data: Readonly<Record<string, string>> }).data;
const flux = (parse(FLUX) as { spec: { healthCheckExprs: readonly FluxCheck[] } }).spec
  .healthCheckExprs;

const sourceOf = (pattern: string): string =>
  filesOf(pattern)
    .filter(({ path }) => !path.endsWith('.test.ts'))
    .map(({ text }) => text)
    .join('\n');

function argoCheck(kind: string): string {
  return argo[`resource.customizations.health.${kind}`] ?? '';
}

function fluxCheck(group: string, kind: string): string {
  const found = flux.find((each) => each.kind === kind && each.apiVersion.startsWith(`${group}/`));
  return `${found?.current} ${found?.failed}`;
}

/** All final states in the source except `Completed`. */
const FAILED = [
  ...sourceOf('src/dialects/autopilot/plan/states.ts').matchAll(
    /^ {2}\['(\w+)', '(?:failed|incomplete|invalid)'\]/gm,
  ),
].map(([, state = '']) => state);

test('the checks of a k0s Plan know every state in which a Plan ends', () => {
  expect(FAILED).toContain('ApplyFailed');
  const inArgo = [...argoCheck('autopilot.k0sproject.io_Plan').matchAll(/(\w+) = true/g)];
  const inFlux =
    fluxCheck('autopilot.k0sproject.io', 'Plan').match(/status\.state in\s*\[.*?\]/s)?.[0] ?? '';
  expect(inArgo.map(([, state = '']) => state).toSorted()).toEqual(FAILED.toSorted());
  expect([...inFlux.matchAll(/'(\w+)'/g)].map(([, state = '']) => state).toSorted()).toEqual(
    FAILED.toSorted(),
  );
  for (const state of FAILED) expect(['done', 'running', 'new']).not.toContain(phaseOfPlan(state));
  expect(phaseOfPlan('Completed')).toBe('done');
});

test.each([
  ['upgrade.cattle.io', 'Plan', 'src/dialects/cattle/**/*.ts'],
  ['upgrade.refit.dev', 'UpgradePolicy', 'src/engine/policy/*.ts'],
  ['upgrade.refit.dev', 'NodeRollout', 'src/engine/report/*.ts'],
])('the checks of %s %s name conditions that the source writes', (group, kind, pattern) => {
  const checks = [argoCheck(`${group}_${kind}`), fluxCheck(group, kind)];
  const source = sourceOf(pattern);
  for (const check of checks) {
    const types = [
      ...check.matchAll(/type == ["'](\w+)["']/g),
      ...[...check.matchAll(/type in \[([^\]]*)\]/g)].flatMap(([, list = '']) => [
        ...list.matchAll(/'(\w+)'/g),
      ]),
    ].map(([, type = '']) => type);
    expect(types.length).toBeGreaterThan(0);
    for (const type of types) expect(source).toContain(`'${type}'`);
  }
});

/** Returns the annotations that the leader writes onto a Plan that has ended like this. */
function written(
  end: { readonly phase: PlanPhase; readonly reason?: Reason },
  generation: number,
): Record<string, string> {
  const source = { apiVersion: 'v1', kind: 'Plan', name: 'autopilot', uid: 'uid', created: '' };
  const conditions = conditionsOf({ ...end, source, generation }, [], [], T0);
  return { [CONDITIONS_ANNOTATION]: JSON.stringify(conditions), [MESSAGE_ANNOTATION]: 'why' };
}

const DONE = { phase: 'done' } as const;

/** Plans of k0s as the leader writes them, and what the checks must say. Argo CD also compares the generation. */
const PLANS: readonly (readonly [string, object, string, 'current' | 'failed' | 'neither'])[] = [
  ['that runs', { state: 'SchedulableWait' }, 'Progressing', 'neither'],
  ['that has no status yet', {}, 'Progressing', 'neither'],
  ['that is done', { state: 'Completed' }, 'Healthy', 'current'],
  ['that failed', { state: 'ApplyFailed' }, 'Degraded', 'failed'],
  [
    'that was done and is seen as such',
    { state: 'Completed', annotations: written(DONE, 2) },
    'Healthy',
    'current',
  ],
  [
    'whose last edit the leader has not seen',
    { state: 'Completed', annotations: written(DONE, 1) },
    'Progressing',
    'current',
  ],
  ...(
    [
      ['edited', 'EditedAfterEnd'],
      ['differs', 'MixedVersions'],
      ['differs', 'VersionDiffers'],
      ['done', 'DoneWithSkipped'],
      ['empty', 'NoTargets'],
    ] as const
  ).map(
    ([phase, code]) =>
      [
        `that is ${phase} because of ${code}`,
        { state: 'Completed', annotations: written({ phase, reason: because(code, 'why') }, 1) },
        'Degraded',
        'failed',
      ] as const,
  ),
];

function planWith({
  state,
  annotations,
}: {
  readonly state?: string;
  readonly annotations?: object;
}) {
  return { metadata: { generation: 2, annotations }, ...(state ? { status: { state } } : {}) };
}

test.each(PLANS)('Flux judges a k0s Plan %s', (_name, given, _argo, expected) => {
  const check = flux.find(({ apiVersion }) => apiVersion.startsWith('autopilot.'));
  const context = { status: {}, ...JSON.parse(JSON.stringify(planWith(given))) } as object;
  const [current, failed] = [check?.current ?? '', check?.failed ?? ''].map((expression) =>
    Boolean(evaluate(expression, context)),
  );
  const found = [...(current ? ['current'] : []), ...(failed ? ['failed'] : [])];
  expect(found).toEqual(expected === 'neither' ? [] : [expected]);
});

const NO_LUA = whyNoProgram('lua5.4', 'lua5.4');
testUnless(NO_LUA)('Argo CD judges k0s Plans as their state and annotations say', () => {
  for (const [, given, expected] of PLANS) {
    const program = [
      `local obj = ${luaOf(planWith(given))}`,
      `local function check()\n${argoCheck('autopilot.k0sproject.io_Plan')}\nend`,
      'print(check().status)',
    ].join('\n');
    const { stdout, stderr } = spawnSync('lua5.4', ['-'], { input: program, encoding: 'utf8' });
    expect([stdout.trim(), stderr]).toEqual([expected, '']);
  }
});

/** Returns the value as a table of Lua. */
function luaOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{${fields.map(([key, each]) => `[${JSON.stringify(key)}] = ${luaOf(each)}`).join(', ')}}`;
}
