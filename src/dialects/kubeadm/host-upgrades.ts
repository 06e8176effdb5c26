/** Owns the contract of whoever works on hosts. */
import type { Target } from '../../engine/model/recorded.ts';

/** What a host is brought forward in: all of it in one go, or its part of the control plane first and its kubelet later. */
export type Part = 'kubeadm' | 'kubelet';

export interface HostUpgrade {
  /** The rollout's uid. */
  readonly rollout: string;
  readonly target: Target;
  readonly version: string;
  /** Of `kubeadm upgrade`. */
  readonly verb: 'apply' | 'node';
  readonly parts: readonly Part[];
}

export interface HostUpgrades {
  /** True while this process works on the target. */
  isAt(target: Target): boolean;
  /** True while that work waits until the node is empty. */
  isWaiting(target: Target): boolean;
  /** Resolves once it is begun; begins nothing where it is under way. */
  begin(work: HostUpgrade): Promise<void>;
  /** The node is empty: the work goes on, where it waits for that. */
  acknowledge(target: Target): void;
  /** Ends work that has touched nothing yet, and resolves once the Node tells why. */
  stop(target: Target, reason: string): Promise<void>;
}
