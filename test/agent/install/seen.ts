/** The results that `inside.ts` writes in its jail. */
import type { SeenForeign } from './foreign.ts';
import type { ByPods } from './pods.ts';

export interface Seen {
  /** The output of install: before k0s ran, after k0s ran, and at the second install. */
  readonly tooEarly: string;
  readonly installed: string;
  /** Empty if the second install did not restart the agent. */
  readonly again: string;
  readonly removed: string;
  /** The state, the download in advance and the previous binary that existed before uninstall. */
  readonly wasThere: readonly string[];
  /** What uninstall left. */
  readonly left: readonly string[];
  /** Output of install on a worker whose k0s runs its own agent. */
  readonly besideOwn: string;
  /** The output of install while other users may write to the kubelet's kubeconfig. */
  readonly distrusted: string;
  /** The output of install while other users may write to the directory of the status socket of k0s. */
  readonly unasked: string;
  readonly foreign: SeenForeign;
  /** The last status and the report of a successful upgrade, and of an upgrade to a build that ends at once. */
  readonly good: readonly [status: string, report: string];
  readonly bad: readonly [status: string, report: string];
  /** The results of an upgrade by pods of the DaemonSet, after the service was removed. */
  readonly byPod?: ByPods;
  readonly upgradeMs: number;
  /** How long the service manager waits before it restarts a service by itself. */
  readonly respawnMs: number;
  /**
   * The versions of k0s: before the upgrade, after it, after the roll-back, after the agent was removed, and after the
   * upgrade by pods.
   */
  readonly versions: readonly string[];
  readonly config: string;
}
