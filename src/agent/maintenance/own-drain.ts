/** A drain of the agent's own node, with the options and the time limit of the signal's policy. */
import { type DrainProgress, drainNode } from '../../drain/drain-node.ts';
import { DEFAULT_DRAIN } from '../../drain/pods.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { AgentDrain } from '../../signal/annotations.ts';
import { formatDuration } from '../../util/duration.ts';
import { defined } from '../../util/json.ts';
import type { Tools } from '../../util/tools.ts';

interface OwnDrainParts extends Tools {
  readonly client: KubeClient;
}

/** The drain took longer than the policy allows; the message names what is left. */
export class DrainLateError extends Error {
  override readonly name = 'DrainLateError';
}

/** Its `abort` aborts with its parent, or with a DrainLateError when the time is up. */
export function ownDrain(drain: AgentDrain, parts: OwnDrainParts, parent: AbortSignal) {
  const { timeoutMs, localData, unmanagedPods, gracePeriodSeconds } = drain;
  const options = { ...DEFAULT_DRAIN, ...defined({ localData, unmanagedPods, gracePeriodSeconds }) };
  let progress: DrainProgress | undefined;
  const late = new AbortController();
  const abort = AbortSignal.any([parent, late.signal]);
  const giveUp = (): void => late.abort(new DrainLateError(lateness(timeoutMs ?? 0, progress)));
  const cancel = timeoutMs === undefined ? (): void => undefined : parts.clock.schedule(timeoutMs, giveUp);
  const run = async (node: string): Promise<void> => {
    const onChange = (next: DrainProgress): void => {
      progress = next;
      parts.log.info('draining', { node, ...next });
    };
    await drainNode(node, options, { ...parts, abort, onChange });
  };
  return { abort, run, [Symbol.dispose]: cancel };
}

function lateness(timeoutMs: number, progress: DrainProgress | undefined): string {
  const late = `the node was not drained within ${formatDuration(timeoutMs)}`;
  if (progress === undefined) return late;
  const { left, blockedBy } = progress;
  const pods = left === 1 ? '1 pod is left' : `${left} pods are left`;
  return `${late}: ${pods}${blockedBy === undefined ? '' : `: ${blockedBy}`}`;
}
