/**
 * Lets an edited plan that has ended start again, in three writes: an annotation names the new run and the status that it
 * replaces, then that status is removed, then the annotation no longer names it. Each write has the resourceVersion that was
 * read. So after a crash the next leader goes on with the next write, and of two leaders one fails.
 */
import type { KubeObject } from '../../kube/resources.ts';
import { ifUnchanged } from '../../kube/status-error.ts';
import { isRestartDue } from '../decide/ended.ts';
import type { Evaluations } from '../decide/evaluate-target.ts';
import { isFinal } from '../model/rollout.ts';
import { digestOfStatus, restartOn, withRestart } from '../model/runs.ts';
import type { Effects } from './writes.ts';

export interface RestartStep {
  readonly kind: 'announce' | 'clear' | 'confirm';
  readonly plan: KubeObject;
}

/** The next of these writes; undefined if nothing starts again, or all are done. */
export function restartStep(plan: KubeObject, evaluations: Evaluations): RestartStep | undefined {
  const { snapshot, policy, now } = evaluations;
  const { rollout } = snapshot;
  const known = restartOn(plan);
  const { generation } = plan.metadata;
  if (known?.replaces !== undefined && known.replaces !== digestOfStatus(plan))
    return { kind: 'confirm', plan: withRestart(plan, { generation: known.generation }) };
  if (generation === undefined || !isFinal(rollout) || rollout.unread) return undefined;
  if (known?.replaces !== undefined && known.generation === generation) {
    const { status: _, ...cleared }: KubeObject & { readonly status?: unknown } = plan;
    return { kind: 'clear', plan: cleared };
  }
  const isBegun = known?.replaces !== undefined;
  if (!isBegun && !isRestartDue(snapshot, policy, now)) return undefined;
  const restart = { generation, replaces: digestOfStatus(plan) };
  return { kind: 'announce', plan: withRestart(plan, restart) };
}

/** False if the plan has changed: nothing is written then. */
export async function carryOutRestart(
  { dialect, client, ownWrites, abort }: Effects,
  { kind, plan }: RestartStep,
): Promise<boolean> {
  const options = kind === 'clear' ? { abort, subresource: 'status' } : { abort };
  const written = await ifUnchanged(client.replace(dialect.plans, plan, options));
  if (written) ownWrites.remember(dialect.plans, written);
  return written !== undefined;
}
