/** Copies what people have asked of a plan to the other objects of the plan, one of which may have to represent it later. */
import type { KubeObject } from '../../kube/resources.ts';
import { isOfObject } from '../../kube/status-error.ts';
import { unlessError } from '../../util/errors.ts';
import { settleAll } from '../../util/waits.ts';
import { carryOut, type Effects } from './writes.ts';

/**
 * Resolves after the copies are written. An object that has changed meanwhile, or that the API server refuses to change,
 * gets its copy in a later reconcile: the plan itself goes on.
 */
export async function copyControls(effects: Effects, plan: KubeObject): Promise<void> {
  const { dialect, world } = effects;
  const copies = dialect.planObjects?.copies?.(plan, world) ?? [];
  const unlessRefused = unlessError(isOfObject);
  await settleAll(copies.map(async (copy) => await unlessRefused(carryOut(effects, copy))));
}
