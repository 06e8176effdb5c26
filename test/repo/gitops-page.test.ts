/** Tests that the health checks in docs/guides/gitops.md agree with the states and conditions that Refit writes. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { phaseOfPlan } from '../../src/dialects/autopilot/plan/states.ts';
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
  const inFlux = fluxCheck('autopilot.k0sproject.io', 'Plan').match(/\[.*\]/s)?.[0] ?? '';
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
