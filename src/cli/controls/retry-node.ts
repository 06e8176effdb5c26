/** Tries a failed node again, whether a plan upgrades it or it belongs to an object such as a Machine. */
import type { SessionParts } from '../status/status-session.ts';
import { applyControl, type ControlFlags } from './control-command.ts';
import { retry } from './retry.ts';

/** Tries the node again. `node` is the name of the node, or of its object. Rejects with REFIT_CONTROL if the node has not failed. */
export async function retryNode(
  node: string,
  flags: ControlFlags,
  parts: SessionParts,
): Promise<void> {
  for (const { objects } of parts.modules) {
    const commands = await objects?.();
    if ((await commands?.retry(node, flags, parts)) === true) return;
  }
  await applyControl(retry(node), flags, parts);
}
