/** Owns what everything that works on one host shares, whichever object it works for. */
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/log.ts';
import type { AgentOptions } from '../options.ts';
import type { ServicePlaces } from '../service/discovery/service-place.ts';
import type { Restarter } from '../service/restarter.ts';
import type { StatePaths } from '../state/paths.ts';

export interface HostParts {
  readonly client: KubeClient;
  readonly options: AgentOptions;
  readonly paths: StatePaths;
  readonly places: ServicePlaces;
  /** Absolute path of the service's binary, where a flag names it. */
  readonly binary: string | undefined;
  readonly restarter: Restarter;
  /** What download servers see. */
  readonly userAgent: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}
