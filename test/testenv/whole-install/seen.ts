/** What the test and the hosts of `whole-install.test.ts` tell each other. */

/** In `host.json`: what a host is to be. */
export interface HostJob {
  /** Of the machine, and so of its Node or ControlNode. */
  readonly name: string;
  readonly version: string;
  /** Controllers only, as `address:port`: the address of its API server, and the one behind it. */
  readonly apiServer?: { readonly listen: string; readonly upstream: string };
}

/** In `seen.json`: what happened there. */
export interface SeenHost {
  readonly error?: string;
  /** Outputs of install and uninstall. */
  readonly installed: string;
  readonly removed: string;
  /** What uninstall left. */
  readonly left: readonly string[];
  /** Of k0s at the end. */
  readonly version: string;
}

/** Files by which the test tells the host to remove the agent, and where it leaves credentials. */
export const FINISH = 'finish';
export const CREDENTIALS = 'credentials';
