/** Counts targets in an annotation of a Plan with StatusShards, for people and scripts. No decision depends on the counts. */
import type { Plan } from '../../../api/autopilot/plan.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { parseJson } from '../../../util/json.ts';
import type { Counts } from './shard-reference.ts';

export const PROGRESS_ANNOTATION = 'upgrade.refit.dev/progress';

/** Milliseconds between two writes of the counts: each write stores the whole Plan again. */
const COUNTED_EVERY_MS = 10_000;

export interface Progress extends Counts {
  readonly inFlight: number;
  readonly pending: number;
  /** RFC 3339. */
  readonly at: string;
}

export function progressOf({ metadata }: Plan): string | undefined {
  return metadata.annotations?.[PROGRESS_ANNOTATION];
}

/** The plan with new counts if the old ones are outdated or the rollout is over. Has no status: that is another write. */
export function counted(plan: Plan, counts: Omit<Progress, 'at'>, isOver: boolean, now: number): Plan | undefined {
  const isFresh = now - countedAt(plan) < COUNTED_EVERY_MS;
  if (isFresh && !isOver) return undefined;
  const text = JSON.stringify({ ...counts, at: rfc3339(now) } satisfies Progress);
  const { status: _, ...rest } = plan;
  const annotations = { ...plan.metadata.annotations, [PROGRESS_ANNOTATION]: text };
  return { ...rest, metadata: { ...plan.metadata, annotations } };
}

/** Milliseconds since the epoch; 0 if there are no readable counts. */
function countedAt(plan: Plan): number {
  const { at } = Object(parseJson(progressOf(plan))) as { at?: unknown };
  return Date.parse(String(at)) || 0;
}
