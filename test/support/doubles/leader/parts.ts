/** The parts that plan passes get, and their outcomes. */
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
  /** Chooses the next target. The original chooses at random. */
  readonly pick: (names: readonly string[]) => string;
  /** Requests `/readyz` at one address, and resolves with the HTTP status. */
  readonly askReadyz: (host: string) => Promise<number>;
  /**
   * Describes the removed APIs that prevent an update to a version. Undefined if there are none. Rejects if that cannot
   * be determined.
   */
  readonly findRemovedApis: (version: string) => Promise<string | undefined>;
}

/**
 * One pass over one command. It changes the status of the command in place. Rejects if the pass fails and must not be
 * repeated.
 */
export type Pass = (parts: LeaderParts, view: CommandView, plan: Plan) => Promise<Outcome>;
