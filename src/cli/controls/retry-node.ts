/** Tries a failed node again, whether a plan or Cluster API upgrades it. */
import type { SessionParts } from '../status/status-session.ts';
import { applyControl, type ControlFlags } from './control-command.ts';
import { retryMachine } from './machines.ts';
import { retry } from './retry.ts';

/** Tries the node again. `node` is the name of the node, or of its Machine. Rejects with REFIT_CONTROL if the node has not failed. */
export async function retryNode(
  node: string,
  flags: ControlFlags,
  parts: SessionParts,
): Promise<void> {
  if (await retryMachine(node, flags, parts)) return;
  await applyControl(retry(node), flags, parts);
}
