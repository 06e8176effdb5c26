/** The observations that `inside.ts` reports from its jail. */
export interface SeenController {
  /** The name of the host. */
  readonly name: string;
  /** The Node for which the agent has rights, and the Node of the kubelet. */
  readonly nodes: readonly [asked: string, kubelets: string];
  readonly installed: string;
  /** The ControlNode, with the name that kubectl prints. */
  readonly controlNode: string;
  /** The name of the user as which the API server authenticates the agent. */
  readonly user: string;
  /** The status that the agent wrote for a signal that came after its first certificate had expired. */
  readonly answered: string;
  /** True if the same process of the agent wrote that status. */
  readonly isSame: boolean;
  /** The output of the first `refit uninstall agent`. */
  readonly removed: string;
  /** The output of a second `refit uninstall agent`. */
  readonly removedAgain: string;
  /** The names of the agent's objects that remain in the cluster after the commands that uninstall printed have run. */
  readonly leftInCluster: readonly string[];
  /** The paths that uninstall did not remove. */
  readonly left: readonly string[];
}
