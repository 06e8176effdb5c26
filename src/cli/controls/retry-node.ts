/** Tries a failed node again, whether a plan upgrades it or it belongs to an object such as a Machine. */
import { settleAll } from '../../util/waits.ts';
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
    const found = (await commands?.retry(node, flags, parts)) ?? false;
    if (found === true) return;
    if (found === false) continue;
    const { names, plan } = found;
    const chosen = { ...(plan !== undefined && { plan }), ...flags };
    await settleAll(names.map(async (name) => await applyControl(retry(name), chosen, parts)));
    return;
  }
  await applyControl(retry(node), flags, parts);
}
