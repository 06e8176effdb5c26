/** Owns what the version rules are asked about, and the form of their answer. All versions are text, with or without `v`. */

export interface VersionFacts {
  /** Of every API server, as found; empty where only other rules are asked. */
  readonly apiServers: readonly string[];
  /** What the API servers shall have; absent where only the present is judged. */
  readonly target?: string;
  /** True where a rollout for this very target has begun: API servers then differ. */
  readonly resuming?: boolean;
  /** Minor versions of v1 that are still maintained: the oldest of them. Not judged where absent. */
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
  /** What it shall have; absent where it stays. */
  readonly target?: string;
  /** No pod but those of DaemonSets and files runs there. */
  readonly drained?: boolean;
  /** A new machine takes its place. */
  readonly replaced?: boolean;
  /** The only API server it speaks to; absent where a load balancer may send it to any. */
  readonly apiServer?: string;
}

/** kube-controller-manager, kube-scheduler or a cloud controller manager. */
export interface ControllerManagerFacts {
  readonly name: string;
  readonly version: string;
  /** The only API server it speaks to; absent where a load balancer may send it to any. */
  readonly apiServer?: string;
}

export interface KubeadmFacts {
  /** Of the binary that will run; absent where it cannot be read. */
  readonly version?: string;
  readonly verb: 'apply' | 'node' | 'join';
  /** The cluster's version in ConfigMap kubeadm-config: what the last `upgrade apply` left. */
  readonly cluster?: string;
  /** Version of the kubeadm that last managed this node. */
  readonly managedBy?: string;
}

/** Of one host, for what a kubelet of the target's minor demands. */
export interface NodeFacts {
  readonly cgroup?: 1 | 2;
  readonly containerd?: string;
  readonly kernel?: string;
  readonly kubeletFlags?: readonly string[];
  readonly kubeProxyMode?: string;
}

/** hard: never overridden · force: safe only on purpose, which nothing offers yet, so it stops too · warn: told, and no more. */
export type Severity = 'hard' | 'force' | 'warn';

export interface Finding {
  /** Rule of docs/guides/kubeadm.md. */
  readonly rule: string;
  readonly severity: Severity;
  /** One sentence. */
  readonly message: string;
}
