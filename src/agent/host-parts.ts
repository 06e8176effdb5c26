/** Defines what an agent knows about its host, and the tools that it uses. */
import type { KubeClient } from '../kube/client.ts';
import type { Tools } from '../util/tools.ts';
import type { LeaseDelegation } from './maintenance/lease-delegation.ts';
import type { AgentOptions } from './options.ts';
import type { ServicePlaces } from './service/service-place.ts';
import type { ServiceRestarter } from './service/service-restarter.ts';
import type { StatePaths } from './state/state-directory.ts';

export interface HostParts extends Tools {
  readonly client: KubeClient;
  readonly options: AgentOptions;
  readonly paths: StatePaths;
  readonly places: ServicePlaces;
  readonly binary: string | undefined;
  readonly restarter: ServiceRestarter;
  readonly delegation: LeaseDelegation;
  readonly userAgent: string;
  readonly version: string;
}

/** The value of REFIT_ROOT, a directory that replaces `/`. Only tests set it. */
export const ROOT = process.env['REFIT_ROOT'] ?? '';
