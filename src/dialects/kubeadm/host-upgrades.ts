/** The contract for running the steps of an upgrade on hosts. */
import type { Target } from '../../engine/model/recorded.ts';

/** A host runs both parts at once, or its control plane part first and its kubelet later. */
export type Part = 'kubeadm' | 'kubelet';

export interface HostUpgrade {
  /** Uid. */
  readonly rollout: string;
  readonly target: Target;
  readonly version: string;
  /** `kubeadm upgrade <verb>`. */
  readonly verb: 'apply' | 'node';
  readonly parts: readonly Part[];
}

export interface HostUpgrades {
  /** True while this process upgrades the target. */
  isAt(target: Target): boolean;
  /** True while it waits for the drain of the node. */
  isWaiting(target: Target): boolean;
  /** Resolves once it has started; does nothing if it already runs. */
  begin(work: HostUpgrade): Promise<void>;
  /** The node is drained: continues, if it waits for that. */
  acknowledge(target: Target): void;
  /** Ends work that has changed nothing yet; resolves once the reason is on the Node. */
  stop(target: Target, reason: string): Promise<void>;
}
