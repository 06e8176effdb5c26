/** What `inside.ts` reports out of its jail. */
import type { SeenForeign } from './foreign.ts';
import type { ByPods } from './pods.ts';

export interface Seen {
  /** Output of install before k0s ran, then after, then a second time. */
  readonly tooEarly: string;
  readonly installed: string;
  /** Empty when the agent was not started anew. */
  readonly again: string;
  readonly removed: string;
  /** State, what was fetched ahead, and the previous binary, before uninstall. */
  readonly wasThere: readonly string[];
  /** What uninstall left. */
  readonly left: readonly string[];
  /** Output of install on a worker whose k0s runs its own agent. */
  readonly besideOwn: string;
  /** Output of install while others may write the kubelet's kubeconfig. */
  readonly distrusted: string;
  /** Output of install while others may write where k0s has its status socket. */
  readonly unasked: string;
  readonly foreign: SeenForeign;
  /** Last status and report of an upgrade, and of one to a build that ends at once. */
  readonly good: readonly [status: string, report: string];
  readonly bad: readonly [status: string, report: string];
  /** Of one by pods of the DaemonSet, after the service was removed. */
  readonly byPod?: ByPods;
  readonly upgradeMs: number;
  /** How long the service manager waits before it starts a service anew by itself. */
  readonly respawnMs: number;
  /** Of k0s: before the upgrade, after it, after the roll-back, after the agent was removed, and after the pod's upgrade. */
  readonly versions: readonly string[];
  readonly config: string;
}
