/** What `inside.ts` reports out of its jail. */
export interface SeenController {
  /** Of the host. */
  readonly name: string;
  /** For which Node the agent has rights, and that of the kubelet. */
  readonly nodes: readonly [asked: string, kubelets: string];
  readonly installed: string;
  /** As kubectl names it. */
  readonly controlNode: string;
  /** Whom the API server takes the agent for. */
  readonly user: string;
  /** Its status for a signal that came after its first certificate had expired. */
  readonly answered: string;
  /** Whether it was the same process that answered. */
  readonly isSame: boolean;
  /** Output of uninstall. */
  readonly removed: string;
  /** The same of a second one. */
  readonly removedAgain: string;
  /** Names of the agent's objects once the commands ran that uninstall printed. */
  readonly leftInCluster: readonly string[];
  /** What uninstall left. */
  readonly left: readonly string[];
}
