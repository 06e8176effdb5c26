/** Owns the counts of a Plan whose targets stand in status shards: an annotation for people and scripts, on which nothing is decided. */
import type { Plan } from '../../../api/autopilot/plan.ts';
import { rfc3339 } from '../../../util/clock.ts';
import type { Counts } from './mark.ts';

export const PROGRESS_ANNOTATION = 'upgrade.refit.dev/progress';

/** Milliseconds for which counts may stand: each write of the annotation stores the whole plan once more. */
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

/** The plan with new counts, where those on it are old or where it ends; without its status, which is written apart. */
export function counted(plan: Plan, counts: Omit<Progress, 'at'>, isOver: boolean, now: number): Plan | undefined {
  const isFresh = now - countedAt(plan) < COUNTED_EVERY_MS;
  if (isFresh && !isOver) return undefined;
  const text = JSON.stringify({ ...counts, at: rfc3339(now) } satisfies Progress);
  const { status: _, ...rest } = plan;
  const annotations = { ...plan.metadata.annotations, [PROGRESS_ANNOTATION]: text };
  return { ...rest, metadata: { ...plan.metadata, annotations } };
}

/** Milliseconds since the epoch; long ago where nothing that can be read stands there. */
function countedAt(plan: Plan): number {
  const [, at = ''] = /"at":"([^"]*)"/.exec(progressOf(plan) ?? '') ?? [];
  const time = Date.parse(at);
  return Number.isNaN(time) ? 0 : time;
}
