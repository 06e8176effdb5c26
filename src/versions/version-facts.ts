/** The input and the answer of the version rules. All versions are text, with or without `v`. */
import { compareVersions, minorsBetween, type Version } from '../util/version.ts';

export interface VersionFacts {
  /** Of every API server, as found; empty if only other rules are needed. */
  readonly apiServers: readonly string[];
  /** What the API servers shall have; absent to judge only the present state. */
  readonly target?: string;
  /** True if a rollout to this target has started: API servers may then differ. */
  readonly resuming?: boolean;
  /** The oldest maintained minor version of v1; not judged if absent. */
  readonly oldestMaintained?: number;
  readonly kubelets?: readonly KubeletFacts[];
  readonly kubeProxies?: readonly { readonly version: string; readonly kubelet?: string }[];
  readonly controllers?: readonly ControllerManagerFacts[];
  readonly kubectl?: string;
  readonly kubeadm?: KubeadmFacts;
  readonly etcd?: { readonly members: readonly string[]; readonly target: string };
  readonly node?: NodeFacts;
}

export interface KubeletFacts {
  readonly name?: string;
  readonly version: string;
  /** What it shall have; absent if it stays. */
  readonly target?: string;
  /** Only DaemonSet and static pods run there. */
  readonly drained?: boolean;
  /** A new machine takes its place. */
  readonly replaced?: boolean;
  /** The only API server that it connects to; absent behind a load balancer. */
  readonly apiServer?: string;
}

/** kube-controller-manager, kube-scheduler or a cloud controller manager. */
export interface ControllerManagerFacts {
  readonly name: string;
  readonly version: string;
  /** The only API server that it connects to; absent behind a load balancer. */
  readonly apiServer?: string;
}

export interface KubeadmFacts {
  /** Of the binary that will run; absent if it is unreadable. */
  readonly version?: string;
  readonly verb: 'apply' | 'node' | 'join';
  /** The version in ConfigMap kubeadm-config, from the last `upgrade apply`. */
  readonly cluster?: string;
  /** Version of the kubeadm that last managed this node. */
  readonly managedBy?: string;
}

/** Of one host: what a kubelet of the target's minor version depends on. */
export interface NodeFacts {
  readonly cgroup?: 1 | 2;
  readonly containerd?: string;
  readonly kernel?: string;
  readonly kubeletFlags?: readonly string[];
  readonly kubeProxyMode?: string;
}

/** hard: stops always · force: may be forced one day, and stops until then · warn: is only reported. */
export type Severity = 'hard' | 'force' | 'warn';

export interface Finding {
  /** Rule of docs/guides/kubeadm.md. */
  readonly rule: string;
  readonly severity: Severity;
  readonly message: string;
}

export const hard = (rule: string, message: string): Finding => ({ rule, severity: 'hard', message });
export const force = (rule: string, message: string): Finding => ({ rule, severity: 'force', message });
export const warn = (rule: string, message: string): Finding => ({ rule, severity: 'warn', message });

export class Findings {
  readonly list: Finding[] = [];
  readonly hard = (rule: string, message: string): unknown => this.list.push(hard(rule, message));
  readonly force = (rule: string, message: string): unknown => this.list.push(force(rule, message));
  readonly warn = (rule: string, message: string): unknown => this.list.push(warn(rule, message));
}

/** The rules about one step of anything from version to version: when a step breaks one, and the words for it. */
const STEP_RULES = {
  Downgrade: { isBroken: (from: Version, to: Version) => compareVersions(to, from) < 0, way: () => 'down to' },
  SkippedMinor: {
    isBroken: (from: Version, to: Version) => to.major > from.major || minorsBetween(from, to).length > 0,
    way: (from: Version, to: Version) =>
      `past ${to.major > from.major ? 'the rest of its major version' : minorsBetween(from, to).join(', ')} to`,
  },
} as const;

/** The rule that the step breaks, and the sentence about it, without its subject. */
export function brokenStep(
  from: Version,
  to: Version,
  texts = { from: textOf(from), to: textOf(to) },
): { readonly rule: keyof typeof STEP_RULES; readonly message: string } | undefined {
  for (const rule of ['Downgrade', 'SkippedMinor'] as const) {
    const { isBroken, way } = STEP_RULES[rule];
    if (isBroken(from, to)) return { rule, message: `would go from ${texts.from} ${way(from, to)} ${texts.to}` };
  }
  return undefined;
}

export function textOf({ major, minor, patch, pre, build }: Version): string {
  return `v${major}.${minor}.${patch}${pre && `-${pre}`}${build && `+${build}`}`;
}
