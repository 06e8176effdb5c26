/** Checks that each rule of the upgrade by kubeadm has a remedy, or says that it has none. */
import { expect, test } from 'vitest';
import { CURES, force, hard, LIFTABLE, type RuleName, remedyOf, warn } from './findings.ts';

const RULE_NAMES = Object.keys(CURES) as readonly RuleName[];

test.each(RULE_NAMES)('a refusal by rule %s names what lifts it, or that nothing does', (rule) => {
  const wanted = /^(nothing lifts this($|: \w)|allow: \[\w+\] in the manifest lifts this$)/;
  expect(remedyOf(hard(rule, 'x'))).toMatch(wanted);
  expect(remedyOf(force(rule, 'x'))).toMatch(wanted);
  expect(remedyOf(warn(rule, 'x'))).toBeUndefined();
});

test.each(LIFTABLE)(
  'the field allow lifts only what may be wrong about a good cluster: %s',
  (rule) => {
    expect(remedyOf(force(rule, 'x'))).toBe(`allow: [${rule}] in the manifest lifts this`);
    expect(remedyOf(hard(rule, 'x'))).toMatch(/^nothing lifts this/);
  },
);

test.each([
  ['cgroup', 'failCgroupV1: false in ConfigMap kube-system/kubelet-config lifts this'],
  ['SystemVerification', 'ignorePreflightErrors: [SystemVerification] lifts this'],
  ['ContainerRuntimeVersion', 'ignorePreflightErrors: [ContainerRuntimeVersion] lifts this'],
] as const)('what a setting outside Refit lifts names it: %s', (lift, wanted) => {
  expect(remedyOf({ ...hard('kernel', 'x'), lift })).toBe(wanted);
});
