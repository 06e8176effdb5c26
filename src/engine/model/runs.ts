/** Tells the runs of one plan apart, where a policy lets an edit of an ended plan start a new rollout. */
import { hash } from 'node:crypto';
import { annotated, type KubeObject } from '../../kube/resources.ts';
import { isRecord, parseJson } from '../../util/json.ts';

/** JSON: a `Restart`. */
export const RESTART_ANNOTATION = 'upgrade.refit.dev/restart';

export interface Restart {
  /** `metadata.generation` of the plan, whose spec the run began with. */
  readonly generation: number;
  /** Digest of the status of the run before. It is there until that status is removed, and no longer. */
  readonly replaces?: string;
}

/** Anybody may have written the annotation: anything but a restart counts as absent. */
export function restartOn({ metadata }: KubeObject): Restart | undefined {
  const found = parseJson(metadata.annotations?.[RESTART_ANNOTATION]);
  if (!isRecord(found)) return undefined;
  const { generation, replaces } = found;
  if (typeof generation !== 'number' || !Number.isSafeInteger(generation) || generation < 1)
    return undefined;
  return typeof replaces === 'string' ? { generation, replaces } : { generation };
}

export function withRestart<T extends KubeObject>(plan: T, restart: Restart): T {
  return annotated(plan, { [RESTART_ANNOTATION]: JSON.stringify(restart) });
}

/** How the id of the present run ends; undefined for the first run of the plan. */
export function runSuffixOf(plan: KubeObject): string | undefined {
  const restart = restartOn(plan);
  return restart === undefined ? undefined : `-g${restart.generation}`;
}

/** The id of the present run: that of the plan, or one of its own, so that no agent takes its signals for earlier ones. */
export function runIdOf(plan: KubeObject, id: string): string {
  return `${id}${runSuffixOf(plan) ?? ''}`;
}

export function digestOfStatus({ status }: KubeObject & { readonly status?: unknown }): string {
  return hash('sha256', JSON.stringify(status ?? null));
}

/** The generation that the present run began with, if a restart says it. Before the old status is removed, none has begun. */
export function generationOfRun(plan: KubeObject): number | undefined {
  const restart = restartOn(plan);
  return restart?.replaces === undefined ? restart?.generation : undefined;
}
