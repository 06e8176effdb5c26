/**
 * Orders the next attempts of failed targets. One write of the plan contains both the order and the numbers of the
 * attempts, and it carries the resourceVersion that was read. So an attempt is counted exactly once, even after a crash
 * or with a second leader.
 */
import { annotated, type KubeObject } from '../../kube/resources.ts';
import { ifUnchanged } from '../../kube/status-error.ts';
import { ownMember } from '../../util/own-member.ts';
import { ATTEMPTS_ANNOTATION, controlKey, RETRY_ANNOTATION, withRetry } from '../model/controls.ts';
import type { Rollout } from '../model/rollout.ts';
import { type RetryOrder, retriedRunOf } from '../schedule/awaited-retries.ts';
import type { Effects } from './writes.ts';

/** Writes the order to retry into the plan. Resolves with false, and writes nothing, if the plan has changed since it was read. */
export async function orderRetries(
  { dialect, client, ownWrites, abort }: Effects,
  plan: KubeObject,
  rollout: Rollout,
  { moments, counts }: RetryOrder,
): Promise<boolean> {
  const prefix = dialect.planObjects?.controlPrefix;
  const key = controlKey(RETRY_ANNOTATION, prefix);
  const known = ownMember(plan.metadata.annotations ?? {}, key);
  const retries = [...moments].reduce((text, [name, at]) => withRetry(text, name, at), known ?? '');
  const counted = JSON.stringify({ run: retriedRunOf(rollout), attempts: counts });
  const ordered = annotated(plan, {
    [key]: retries,
    [controlKey(ATTEMPTS_ANNOTATION, prefix)]: counted,
  });
  const object = dialect.planObjects?.sealed?.(ordered, plan) ?? ordered;
  const written = await ifUnchanged(client.replace(dialect.plans, object, { abort }));
  if (written) ownWrites.remember(dialect.plans, written);
  return written !== undefined;
}
