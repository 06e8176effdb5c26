/** What a scene works with. */
import type { Checks } from '../checks.ts';
import type { Cluster } from './cluster/cluster.ts';
import type { Mirror } from './mirror.ts';
import type { InsideOptions } from './options.ts';

export interface Scene extends InsideOptions {
  readonly cluster: Cluster;
  readonly mirror: Mirror;
  readonly checks: Checks;
  readonly log: (line: string) => void;
}
