/**
 * Tells the runs of one plan apart, where a policy lets an edit of an ended plan start a new rollout. A run has the number of
 * the generation that it began with; the first one has none. The record and the signals say which run they are of. The
 * annotation on the plan only orders a run to begin: it may be lost, or be written again by others, at any time.
 */
import { annotated, type KubeObject } from '../../kube/resources.ts';
import { isRecord, parseJson } from '../../util/json.ts';

/** JSON: `{"generation": <number>}`. */
export const RESTART_ANNOTATION = 'upgrade.refit.dev/restart';

/** What the record of a run other than the first says about it. */
export interface RecordedRun {
  readonly run: number;
  /** `metadata.generation` of the newest spec that the run was carried out with. */
  readonly generation: number;
}

export function isGeneration(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

/** Number of the run that the annotation orders. Anybody may have written it: what is no generation of the plan counts as absent. */
export function orderedRun({ metadata }: KubeObject): number | undefined {
  const found = parseJson(metadata.annotations?.[RESTART_ANNOTATION]);
  const ordered = isRecord(found) ? found['generation'] : undefined;
  const present = metadata.generation ?? 0;
  return isGeneration(ordered) && ordered <= present ? ordered : undefined;
}

export function withOrder<T extends KubeObject>(plan: T, generation: number): T {
  return annotated(plan, { [RESTART_ANNOTATION]: JSON.stringify({ generation }) });
}

/** The id of a run: that of the plan, or one of its own, so that no agent takes its signals for earlier ones. Nothing is read from it. */
export function idOfRun(id: string, run: number | undefined): string {
  return run === undefined ? id : `${id}-g${run}`;
}
