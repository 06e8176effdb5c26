/** Owns asking what no watch shows: every question once in a reconcile, all of a round at the same time. */

import type { DrainPreview, DrainPreviewer } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/types.ts';
import { messageOf } from '../../util/errors.ts';
import { settleAll } from '../../util/settle.ts';
import type { Dialect, Endpoint, World } from '../dialect.ts';
import type { Probe } from '../model/decided.ts';
import type { EndpointHealth } from '../model/observed.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Target } from '../model/recorded.ts';
import type { ProbeBackoff, Unanswered } from './probe-backoff.ts';

/** What is asked by ways of its own, not of the dialect. */
export interface Prober {
  askControlPlane(endpoints: readonly Endpoint[], abort?: AbortSignal): Promise<readonly EndpointHealth[]>;
  /** Begins one look at what drains would meet; nobody looks ahead where absent. */
  look?(abort?: AbortSignal): Pick<DrainPreviewer, 'ahead'>;
}

export interface ProbeParts<P extends KubeObject> {
  readonly dialect: Dialect<P>;
  readonly client: KubeClient;
  readonly prober: Prober;
  readonly abort?: AbortSignal | undefined;
}

/** Attempts whose nodes leave their drain to the leader: once said, that holds until their end. */
export type DrainDelegations = Set<string>;

/** What outlasts a reconcile. */
export interface Memory {
  readonly drainDelegations: DrainDelegations;
  readonly backoffs: ProbeBackoff;
}

/** The answers of one reconcile. */
export class Answers {
  controlPlane: readonly EndpointHealth[] | Unanswered | undefined;
  preconditions: readonly Reason[] | Unanswered | undefined;
  readonly drainPreviews = new Map<string, DrainPreview | Unanswered>();
  /** Several targets may ask for it, and all of them mean the same. */
  #health: Promise<readonly EndpointHealth[]> | undefined;
  #look: Pick<DrainPreviewer, 'ahead'> | undefined;
  readonly #memory: Memory;
  readonly #now: number;
  /** By key: what is asked is asked of the target as it is about to be recorded, which may be another attempt than now. */
  readonly #said = new Map<string, boolean | Unanswered>();

  /** `now` in milliseconds by the steady clock: the same for all of it, so that what is due together is asked together. */
  constructor(memory: Memory, now: number) {
    this.#memory = memory;
    this.#now = now;
  }

  /** Undefined where it was not asked. */
  drainDelegationOf(target: Target): boolean | Unanswered | undefined {
    return this.#memory.drainDelegations.has(attemptOf(target)) || this.#said.get(target.key);
  }

  /** Resolves with what is new of why some have no answer; rejects only where `signal` aborts. */
  async add<P extends KubeObject>(
    probes: readonly Probe[],
    world: World,
    plan: P,
    options: DrainOptions,
    parts: ProbeParts<P>,
  ): Promise<readonly Reason[]> {
    const { backoffs } = this.#memory;
    const asked = probes.map(async (probe) => {
      const question = `${plan.metadata.uid} ${questionOf(probe)}`;
      const backoff = backoffs.of(question, this.#now);
      if (backoff) {
        this.#leave(probe, backoff);
        return [];
      }
      try {
        await this.#ask(probe, world, plan, options, parts);
        backoffs.forget(question);
        return [];
      } catch (error) {
        parts.abort?.throwIfAborted();
        const reason = because('CannotDecide', `${aboutOf(probe)} cannot be told: ${messageOf(error)}`);
        const { isNews, ...unanswered } = backoffs.add(question, reason, this.#now);
        this.#leave(probe, unanswered);
        return isNews ? reason : [];
      }
    });
    return (await settleAll(asked)).flat();
  }

  async #ask<P extends KubeObject>(
    probe: Probe,
    world: World,
    plan: P,
    options: DrainOptions,
    parts: ProbeParts<P>,
  ): Promise<void> {
    const { dialect, client, prober, abort } = parts;
    switch (probe.kind) {
      case 'control-plane':
        this.#health ??= prober.askControlPlane(dialect.endpoints(world), abort);
        this.controlPlane = await this.#health;
        return;
      case 'preconditions':
        this.preconditions = (await dialect.preconditions?.unmet(client, plan, abort)) ?? [];
        return;
      case 'drain-preview': {
        this.#look ??= prober.look?.(abort);
        const drainPreview = await this.#look?.ahead(probe.node, options);
        if (drainPreview) this.drainPreviews.set(probe.node, drainPreview);
        return;
      }
      case 'drain-delegation': {
        const { stage, target } = probe;
        const drainDelegations =
          (await dialect.drainDelegation?.isDelegated?.(client, stage, target, world, abort)) === true;
        this.#said.set(target.key, drainDelegations);
        if (drainDelegations) this.#memory.drainDelegations.add(attemptOf(target));
      }
    }
  }

  #leave(probe: Probe, unanswered: Unanswered): void {
    if (probe.kind === 'control-plane') this.controlPlane = unanswered;
    else if (probe.kind === 'preconditions') this.preconditions = unanswered;
    else if (probe.kind === 'drain-preview') this.drainPreviews.set(probe.node, unanswered);
    else this.#said.set(probe.target.key, unanswered);
  }
}

/** What the question is about, in the words of whoever reads why it has no answer. */
function aboutOf(probe: Probe): string {
  switch (probe.kind) {
    case 'control-plane':
      return 'whether the API servers are ready';
    case 'preconditions':
      return 'what stands against the plan';
    case 'drain-preview':
      return `what a drain of ${probe.node} would meet`;
    case 'drain-delegation':
      return `whether ${probe.target.name} lets the leader drain it`;
  }
}

/** Another attempt is another question. */
function questionOf(probe: Probe): string {
  return probe.kind === 'drain-delegation' ? attemptOf(probe.target) : aboutOf(probe);
}

function attemptOf({ key, since }: Target): string {
  return `${key}@${since}`;
}
