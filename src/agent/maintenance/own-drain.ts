/** A drain of the agent's own node, with the options and the time limit of the signal's policy. */
import { type DrainProgress, drainNode } from '../../drain/drain.ts';
import { DEFAULT_DRAIN, type DrainOptions } from '../../drain/pods.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { AgentDrain } from '../../signal/annotations.ts';
import { formatDuration } from '../../util/duration.ts';
import type { Tools } from '../../util/tools.ts';

interface OwnDrainParts extends Tools {
  readonly client: KubeClient;
}

/** The drain took longer than the policy allows; the message names what is left. */
export class DrainLateError extends Error {
  override readonly name = 'DrainLateError';
}

export class OwnDrain implements Disposable {
  /** Aborts with its parent, or with a DrainLateError when the time is up. */
  readonly abort: AbortSignal;
  readonly #options: DrainOptions;
  readonly #parts: OwnDrainParts;
  readonly #cancel: () => void;
  #progress: DrainProgress | undefined;

  constructor({ timeoutMs, ...options }: AgentDrain, parts: OwnDrainParts, parent: AbortSignal) {
    const { localData, unmanagedPods, gracePeriodSeconds } = options;
    this.#options = {
      localData: localData ?? DEFAULT_DRAIN.localData,
      unmanagedPods: unmanagedPods ?? DEFAULT_DRAIN.unmanagedPods,
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    };
    this.#parts = parts;
    const late = new AbortController();
    this.abort = AbortSignal.any([parent, late.signal]);
    this.#cancel =
      timeoutMs === undefined
        ? () => undefined
        : parts.clock.schedule(timeoutMs, () => late.abort(new DrainLateError(this.#lateness(timeoutMs))));
  }

  async run(node: string): Promise<void> {
    const onChange = (progress: DrainProgress): void => {
      this.#progress = progress;
      this.#parts.log.info('draining', { node, ...progress });
    };
    await drainNode(node, this.#options, { ...this.#parts, abort: this.abort, onChange });
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #lateness(timeoutMs: number): string {
    const late = `the node was not drained within ${formatDuration(timeoutMs)}`;
    if (this.#progress === undefined) return late;
    const { left, blockedBy } = this.#progress;
    const pods = left === 1 ? '1 pod is left' : `${left} pods are left`;
    return `${late}: ${pods}${blockedBy === undefined ? '' : `: ${blockedBy}`}`;
  }
}
