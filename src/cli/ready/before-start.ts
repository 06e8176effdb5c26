/** Makes the checks of `refit ready` for plans that have not started, for the commands that show such plans. */
import { refusalsOf } from '../../engine/assess/advance.ts';
import { isRunBegun } from '../../engine/gates/types.ts';
import { newestVersionOf } from '../../engine/model/newest-version.ts';
import { isFinal } from '../../engine/model/rollout.ts';
import type { Accepted, ReadyReport } from '../../ready/finding.ts';
import type { DialectModule } from '../contract/dialect-module.ts';
import type { SessionDialect } from '../contract/session-dialect.ts';
import type { ConnectionFlags } from '../options.ts';
import { harmless } from '../status/harmless.ts';
import type { Policies } from '../status/load.ts';
import type { Inspection } from '../status/observe.ts';
import type { Session, SessionParts } from '../status/status-session.ts';
import { readyReporter } from './ready-report.ts';

/**
 * Returns the version that the plan will bring; undefined if it will bring none, or if its first node has started. From
 * then on, the versions of the cluster differ, so nobody asks any more whether it is ready.
 */
export function versionBeforeStart(inspection: Inspection, now: number): string | undefined {
  const { snapshot } = inspection;
  const willStart =
    !isFinal(snapshot.rollout) &&
    !isRunBegun(snapshot) &&
    refusalsOf({ ...inspection, now }).length === 0;
  return willStart ? newestVersionOf(snapshot.rollout) : undefined;
}

export interface ReadyAskerFlags extends Pick<ConnectionFlags, 'apiPort'> {
  /** False if the checks of `refit ready` are left out. */
  readonly ready?: boolean;
}

/** What a session that also asks whether the cluster is ready needs of a dialect. */
export type AskedDialect = SessionDialect & Partial<Pick<DialectModule<string>, 'readiness'>>;

export interface ReadyAskerParts extends Pick<SessionParts, 'clock' | 'abort'> {
  /** Nothing is asked unless a dialect has `readiness`. */
  readonly modules: readonly Partial<Pick<DialectModule<string>, 'readiness'>>[];
  readonly policies: Policies;
  /** The checks whose blockers are shown as warnings. */
  readonly accepted?: Accepted;
}

/** Resolves with a report for each version; undefined if there is nothing to ask. */
export async function readinessFor(
  versions: readonly string[],
  { client, config }: Pick<Session, 'client' | 'config'>,
  { ready = true, apiPort }: ReadyAskerFlags,
  { modules, policies, accepted, clock, abort }: ReadyAskerParts,
): Promise<readonly ReadyReport[] | undefined> {
  const loaders = modules.flatMap(({ readiness }) => readiness ?? []);
  if (!ready || versions.length === 0 || loaders.length === 0) return undefined;
  const dialects = await Promise.all(loaders.map(async (load) => await load()));
  const parts = { config, client, policies, dialects, apiPort, clock, abort };
  const reportOn = readyReporter(parts, accepted);
  return harmless(await Promise.all([...new Set(versions)].map(reportOn)));
}
