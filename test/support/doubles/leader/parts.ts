/** What the plan side is given, and what its passes answer. */
import type { Plan } from '../../../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import type { Clock } from '../../../../src/util/clock.ts';
import type { Logger } from '../../../../src/util/log.ts';
import type { Quirks } from '../quirks.ts';
import type { Cache } from '../runtime/manager.ts';
import type { Times } from '../times.ts';
import type { CommandView } from './command-view.ts';

export type PlanState =
  | 'SchedulableWait'
  | 'Schedulable'
  | 'Completed'
  | 'IncompleteTargets'
  | 'InconsistentTargets'
  | 'MissingSignalNode'
  | 'Warning'
  | 'ApplyFailed';

/** `again`: nothing is written, and the pass is repeated later. */
export type Outcome = PlanState | 'again';

export interface LeaderParts {
  readonly client: KubeClient;
  readonly cache: Cache;
  readonly quirks: Quirks;
  readonly times: Times;
  readonly clock: Clock;
  readonly log: Logger;
  /** Chooses the next target; at random in the original. */
  readonly pick: (names: readonly string[]) => string;
  /** Asks one address for `/readyz`, and answers with the HTTP status. */
  readonly askReadyz: (host: string) => Promise<number>;
  /** What removed APIs stand in the way of a version; undefined where none does. Rejects where that cannot be found out. */
  readonly findRemovedApis: (version: string) => Promise<string | undefined>;
}

/** One pass over one command; it changes the status of the command in place. Rejects where the pass fails for good. */
export type Pass = (parts: LeaderParts, view: CommandView, plan: Plan) => Promise<Outcome>;
