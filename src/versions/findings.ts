/**
 * Defines findings about an upgrade by kubeadm. For each rule that refuses an upgrade, it defines what an administrator
 * can do.
 */

/**
 * Maps each rule to what an administrator can do about a refusal that no setting lifts. The text is empty in two cases:
 * the rule only warns, or each refusal has its own text. In the second case, `hard` requires that text.
 */
export const CURES = {
  F1: '',
  F2: '',
  F3: 'make the node Ready',
  F4: '',
  F7: 'bring all API servers to one version',
  F11: '',
  R1: 'upgrade the older API servers first',
  R2: 'set version to the next minor version, or list the minor versions in between under "hops" in the manifest',
  R3: 'bring the kubelet to a version that the API servers allow',
  R5: 'bring it to the version of its API server',
  R7: 'upgrade the API servers first',
  R8: 'bring it to that minor version first',
  R9: 'set spec.drain.enabled: true in the UpgradePolicy',
  R10: '',
  R12: 'set version to what the cluster has, or later',
  R13: 'list the minor versions in between under "hops" in the manifest, or set workersSkipMinors: true for workers',
  R14: 'use a newer Refit, which knows that version',
  Km1: 'correct that version',
  Km2: 'use the kubeadm of the target version',
  Km3: 'upgrade one minor version at a time',
  Km4: 'set version to what the cluster has, or later',
  Km5: 'use the kubeadm of the target version',
  Ks1: 'use the kubeadm of the target version',
  Ks2: 'use the kubeadm of the target version',
  Ks3: 'set version to a release',
  Kd: 'upgrade one minor version at a time, on the first control-plane host first',
  etcd: 'correct that on the etcd members',
  certificate: '',
  removed: '',
  cgroup: '',
  containerd: '',
  kernel: '',
  kubelet: 'start the kubelet of the host',
  clock: '',
  pod: '',
  host: 'correct that on the host, or in the manifest',
  addon: '',
  cordon: '',
  drain: '',
  machines: '',
  webhook: '',
} as const satisfies Readonly<Record<string, string>>;

/** The rules of docs/guides/kubeadm/rules.md. */
export type RuleName = keyof typeof CURES;

/**
 * The rules that may be broken in a healthy cluster. An administrator can name them in `allow` of
 * the manifest.
 */
export const LIFTABLE = ['F7', 'F11', 'R14', 'etcd'] as const;

/** Settings outside of Refit that lift a refusal. */
const LIFTS = {
  cgroup: 'failCgroupV1: false in ConfigMap kube-system/kubelet-config',
  /** This key, and the next one, are names of preflight checks of kubeadm. If kubeadm ignores the check, the rule is lifted. */
  SystemVerification: 'ignorePreflightErrors: [SystemVerification]',
  ContainerRuntimeVersion: 'ignorePreflightErrors: [ContainerRuntimeVersion]',
  back: '`refit kubeadm apply --back`',
  kubeOneLabel: 'if that run will not continue, --force',
} as const;

export interface Finding {
  readonly rule: RuleName;
  /**
   * `hard` stops the upgrade, unless `lift` names a setting that lifts the rule. `force` stops the upgrade, unless
   * `isLiftable` returns true and an administrator lifts the rule. `warn` is only reported.
   */
  readonly severity: 'hard' | 'force' | 'warn';
  readonly message: string;
  readonly lift?: keyof typeof LIFTS;
}

type RuleWithoutCure = {
  [Rule in RuleName]: (typeof CURES)[Rule] extends '' ? Rule : never;
}[RuleName];

/**
 * Returns a refusal that no setting lifts. The rule determines what an administrator can do about it. If the rule has
 * no such text, the caller passes the text as `cure`.
 */
export function hard(rule: Exclude<RuleName, RuleWithoutCure>, found: string): Finding;
export function hard(rule: RuleWithoutCure, found: string, cure: string): Finding;
export function hard(rule: RuleName, found: string, cure?: string): Finding {
  return { rule, severity: 'hard', message: cure === undefined ? found : `${found}; ${cure}` };
}

/** Returns a refusal. The field `allow` lifts it if its rule is one of LIFTABLE. */
export const force = (
  rule: Exclude<RuleName, RuleWithoutCure> | (typeof LIFTABLE)[number],
  message: string,
): Finding => ({ rule, severity: 'force', message });
export const warn = (rule: RuleName, message: string): Finding => ({
  rule,
  severity: 'warn',
  message,
});

export function isLiftable({ severity, rule }: Finding): boolean {
  return severity === 'force' && LIFTABLE.some((name) => name === rule);
}

/**
 * Returns the setting that lifts a refusal. If no setting lifts it, the text says so, and says what to do instead.
 * Undefined for a warning.
 */
export function remedyOf(finding: Finding): string | undefined {
  const { rule, severity, lift } = finding;
  if (severity === 'warn') return undefined;
  if (lift !== undefined) return `${LIFTS[lift]} allows this`;
  if (isLiftable(finding)) return `allow: [${rule}] in the manifest allows this`;
  const cure = CURES[rule];
  return cure === '' ? 'no setting allows this' : `no setting allows this: ${cure}`;
}

/** Returns the message, and for a refusal also its remedy. */
export function describeFinding(finding: Finding): string {
  const remedy = remedyOf(finding);
  return remedy === undefined ? finding.message : `${finding.message}; ${remedy}`;
}

/** Returns the findings. If the manifest lifts the rule of a refusal, a warning replaces the refusal. */
export function withAllowed(findings: readonly Finding[], allow: readonly string[]): Finding[] {
  return findings.map((finding) =>
    isLiftable(finding) && allow.includes(finding.rule)
      ? { ...finding, severity: 'warn', message: `${finding.message}; the manifest allows this` }
      : finding,
  );
}
