/** The data that the test and the hosts of `whole-install.test.ts` exchange. */

/** The content of `host.json`: what the host must be. */
export interface HostJob {
  /** The name of the machine, and so of its Node or ControlNode. */
  readonly name: string;
  readonly version: string;
  /**
   * For controllers only, as `address:port`: the address of the API server on this host, and the address of the server
   * to which it forwards.
   */
  readonly apiServer?: { readonly listen: string; readonly upstream: string };
}

/** The content of `seen.json`: what happened on the host. */
export interface SeenHost {
  readonly error?: string;
  /** Outputs of install and uninstall. */
  readonly installed: string;
  readonly removed: string;
  /** The paths that uninstall did not remove. */
  readonly left: readonly string[];
  /** The version of k0s at the end. */
  readonly version: string;
}

/**
 * The names of two entries in the exchange directory. The test creates `finish` to tell the host to remove the agent.
 * It puts credentials into `credentials`.
 */
export const FINISH = 'finish';
export const CREDENTIALS = 'credentials';
