/** Tests that each rule for an upgrade with kubeadm has a remedy, or says that it has none. */
import { expect, test } from 'vitest';
import {
  CURES,
  describeFinding,
  type Finding,
  hard,
  LIFTABLE,
  type RuleName,
  remedyOf,
  warn,
} from './findings.ts';

const RULE_NAMES = Object.keys(CURES) as readonly RuleName[];

const refusal = (severity: Finding['severity'], rule: RuleName): Finding => ({
  rule,
  severity,
  message: 'x',
});

test.each(RULE_NAMES)('a refusal by rule %s names what lifts it, or that nothing does', (rule) => {
  const wanted = /^(no setting allows this($|: \w)|allow: \[\w+\] in the manifest allows this$)/;
  expect(remedyOf(refusal('hard', rule))).toMatch(wanted);
  expect(remedyOf(refusal('force', rule))).toMatch(wanted);
  expect(remedyOf(warn(rule, 'x'))).toBeUndefined();
});

test.each(LIFTABLE)(
  'the field allow lifts only what may be wrong about a good cluster: %s',
  (rule) => {
    expect(remedyOf(refusal('force', rule))).toBe(`allow: [${rule}] in the manifest allows this`);
    expect(remedyOf(refusal('hard', rule))).toMatch(/^no setting allows this/);
  },
);

test.each([
  ['cgroup', 'failCgroupV1: false in ConfigMap kube-system/kubelet-config allows this'],
  ['SystemVerification', 'ignorePreflightErrors: [SystemVerification] allows this'],
  ['ContainerRuntimeVersion', 'ignorePreflightErrors: [ContainerRuntimeVersion] allows this'],
] as const)('what a setting outside Refit lifts names it: %s', (lift, wanted) => {
  expect(remedyOf({ ...refusal('hard', 'kernel'), lift })).toBe(wanted);
});

test('what to do is that of the rule, or stands in the refusal itself', () => {
  expect(describeFinding(hard('F2', 'host w1 has another role', 'correct the role'))).toBe(
    'host w1 has another role; correct the role; no setting allows this',
  );
  expect(describeFinding(hard('R1', 'API servers are apart'))).toBe(
    'API servers are apart; no setting allows this: upgrade the older API servers first',
  );
});
