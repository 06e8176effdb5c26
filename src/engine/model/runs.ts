/**
 * Distinguishes the runs of one plan. A policy may let the edit of an ended plan start a new run. Each run but the first has a
 * number, the generation of the spec that it began with. The record and the signals name their run. The annotation on the plan only
 * orders a run to begin: others may remove it or write it again at any time.
 */
import { annotated, type KubeObject } from '../../kube/resources.ts';
import { isRecord, parseJson } from '../../util/json.ts';

/**
 * The annotation that orders a new run. Its value is the JSON text `{"generation": <number>}`. If the leader ordered the run to roll an
 * earlier run back, `rollsBack` names that earlier run.
 */
export const RESTART_ANNOTATION = 'upgrade.refit.dev/restart';

/** What the record says about a run other than the first. */
export interface RecordedRun {
  readonly run: number;
  /** `metadata.generation` of the newest spec that the run was carried out with. */
  readonly generation: number;
}

/** Returns true for a valid `metadata.generation`, which is a whole number from 1 on. */
export function isGeneration(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

/**
 * Returns the number of the run that the annotation orders; undefined if it orders none. Anybody may write the annotation, so a
 * number that is no generation of the plan counts as absent.
 */
export function orderedRun({ metadata }: KubeObject): number | undefined {
  const found = parseJson(metadata.annotations?.[RESTART_ANNOTATION]);
  const ordered = isRecord(found) ? found['generation'] : undefined;
  const present = metadata.generation ?? 0;
  return isGeneration(ordered) && ordered <= present ? ordered : undefined;
}

/**
 * Returns the run that the leader ordered the last run to roll back, `<uid of the plan>/<id of the run>`; undefined if it ordered no such
 * run.
 */
export function orderedRollBack({ metadata }: KubeObject): string | undefined {
  const found = parseJson(metadata.annotations?.[RESTART_ANNOTATION]);
  const rollsBack = isRecord(found) ? found['rollsBack'] : undefined;
  return typeof rollsBack === 'string' ? rollsBack : undefined;
}

/** Returns the plan with the annotation that orders a new run with the spec of this generation. */
export function withOrder<T extends KubeObject>(
  plan: T,
  generation: number,
  rollsBack?: string,
): T {
  return annotated(plan, { [RESTART_ANNOTATION]: JSON.stringify({ generation, rollsBack }) });
}

/**
 * Returns the id of a run: the id of the plan for the first run, or else an id of its own, so that no agent confuses its signals
 * with earlier ones. Nothing parses this id.
 */
export function idOfRun(id: string, run: number | undefined): string {
  return run === undefined ? id : `${id}-g${run}`;
}
