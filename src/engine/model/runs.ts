/**
 * Distinguishes the runs of one plan. If a policy allows it, the edit of an ended plan starts a new run. Each run
 * except the first has a number, which is the generation of the spec with which it began. The record and the signals
 * contain the number of their run. The annotation on the plan only orders a run to begin, because others may remove it
 * or write it again at any time.
 */
import { annotated, type KubeObject } from '../../kube/resources.ts';
import { isRecord, parseJson } from '../../util/json.ts';

/**
 * The annotation that orders a new run. Its value is the JSON text `{"generation": <number>}`. If the leader ordered the run to roll an
 * earlier run back, `rollsBack` names that earlier run.
 */
export const RESTART_ANNOTATION = 'upgrade.refit.dev/restart';

/**
 * The annotation with the id of the last run that the leader has admitted. Its value is the JSON text
 * `{"uid": <uid of the plan>, "run": <number>, "id": <id>}`; `run` is absent for the first run. The leader writes it before
 * it tells anybody about the run, so an edit of the plan does not rename the run.
 */
export const RUN_ANNOTATION = 'upgrade.refit.dev/run';

/** Returns the plan with the id of its run. */
export function withRunId<T extends KubeObject>(
  plan: T,
  { id, run }: { readonly id: string; readonly run?: number | undefined },
): T {
  const uid = plan.metadata.uid ?? '';
  return annotated(plan, { [RUN_ANNOTATION]: JSON.stringify({ uid, run, id }) });
}

/** Returns the id that the annotation has for this run of the plan; undefined if it is absent, or about another plan or run. */
export function runIdOn({ metadata }: KubeObject, run: number | undefined): string | undefined {
  const found = parseJson(metadata.annotations?.[RUN_ANNOTATION]);
  if (!isRecord(found) || found['uid'] !== (metadata.uid ?? '') || found['run'] !== run)
    return undefined;
  const { id } = found;
  return typeof id === 'string' && id !== '' ? id : undefined;
}

/** The data that the record contains about a run that is not the first run. */
export interface RecordedRun {
  readonly run: number;
  /** `metadata.generation` of the newest spec with which the run was carried out. */
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
 * Returns the run that is rolled back, as `<uid of the plan>/<id of the run>`, if the leader ordered the last run as a
 * roll-back; undefined otherwise.
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
 * Returns the id of a run. For the first run, this is the id of the plan. Any other run has its own id, so that no
 * agent confuses its signals with earlier signals. No code parses this id.
 */
export function idOfRun(id: string, run: number | undefined): string {
  return run === undefined ? id : `${id}-g${run}`;
}

/** The plan that had a run, and the id of that run. The record of a run may lack the uid. */
interface RunOfPlan {
  readonly planUid?: string;
  readonly id: string;
}

/**
 * Returns `<uid of the plan>/<id of the run>`, the form in which a plan names the run that it rolls back. If the record
 * of a run lacks the uid, no plan can name that run.
 */
export function qualifiedRunId({ planUid = '', id }: RunOfPlan): string {
  return `${planUid}/${id}`;
}

/**
 * Returns the id of the run in `<uid of the plan>/<id of the run>`, the form in which a plan names the run that it rolls back. Returns the
 * whole text if it has no id.
 */
export function runIdIn(named: string): string {
  return named.split('/').slice(1).join('/') || named;
}

/** Matches an id that is a hash. Plans of some products have such ids. */
const HASH = /^[0-9a-f]{40,}$/;
/** The number of characters of a hash that people see. */
const SHORT_HASH = 12;

/** Shortens an id that is a hash, for people. The JSON forms have the whole hash. */
export function shortId(id: string): string {
  return HASH.test(id) ? id.slice(0, SHORT_HASH) : id;
}
