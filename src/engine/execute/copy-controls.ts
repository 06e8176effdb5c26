/** Copies what people have asked of a plan to the other objects of the plan, one of which may have to represent it later. */
import type { KubeObject } from '../../kube/resources.ts';
import { isOfObject } from '../../kube/status-error.ts';
import { unlessError } from '../../util/errors.ts';
import { settleAll } from '../../util/waits.ts';
import { carryOut, type Effects } from './writes.ts';

/**
 * Resolves with true after the copies are written, and with false if an object has changed meanwhile. Then the caller must record
 * nothing, because another object could represent the plan afterwards, and would lack what people have asked for. An
 * object that the API server refuses to change gets its copy in a later reconcile: the plan itself goes on.
 */
export async function copyControls(effects: Effects, plan: KubeObject): Promise<boolean> {
  const { dialect, world } = effects;
  const copies = dialect.planObjects?.copies?.(plan, world) ?? [];
  const unlessRefused = unlessError(isOfObject);
  const written = await settleAll(
    copies.map(async (copy) => await unlessRefused(carryOut(effects, copy))),
  );
  return !written.includes(false);
}
