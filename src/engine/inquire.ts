/** Owns asking what no watch shows: every question once in a reconcile, all of a round at the same time. */
import type { DrainOptions } from '../drain/options.ts';
import type { Look, Outlook } from '../drain/outlook.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import { messageOf } from '../util/errors.ts';
import { settleAll } from '../util/settle.ts';
import type { Dialect, Endpoint, World } from './dialect.ts';
import type { EndpointHealth, Inquiry, Target } from './model.ts';
import { because, type Reason } from './reasons.ts';
import type { Silences, Unanswered } from './unanswered.ts';

/** What is asked by ways of its own, not of the dialect. */
export interface Inquirer {
  askControlPlane(endpoints: readonly Endpoint[], signal?: AbortSignal): Promise<readonly EndpointHealth[]>;
  /** Begins one look at what drains would meet; nobody looks ahead where absent. */
  look?(signal?: AbortSignal): Pick<Look, 'ahead'>;
}

export interface InquiryParts<P extends KubeObject> {
  readonly dialect: Dialect<P>;
  readonly client: KubeClient;
  readonly inquirer: Inquirer;
  readonly signal?: AbortSignal | undefined;
}

/** Attempts whose nodes leave their drain to the leader: once said, that holds until their end. */
export type Consents = Set<string>;

/** What outlasts a reconcile. */
export interface Memory {
  readonly consents: Consents;
  readonly silences: Silences;
}

/** The answers of one reconcile. */
export class Answers {
  controlPlane: readonly EndpointHealth[] | Unanswered | undefined;
  preconditions: readonly Reason[] | Unanswered | undefined;
  readonly outlooks = new Map<string, Outlook | Unanswered>();
  /** Several targets may ask for it, and all of them mean the same. */
  #health: Promise<readonly EndpointHealth[]> | undefined;
  #look: Pick<Look, 'ahead'> | undefined;
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
  consentOf(target: Target): boolean | Unanswered | undefined {
    return this.#memory.consents.has(attemptOf(target)) || this.#said.get(target.key);
  }

  /** Resolves with what is new of why some have no answer; rejects only where `signal` aborts. */
  async add<P extends KubeObject>(
    inquiries: readonly Inquiry[],
    world: World,
    plan: P,
    options: DrainOptions,
    parts: InquiryParts<P>,
  ): Promise<readonly Reason[]> {
    const { silences } = this.#memory;
    const asked = inquiries.map(async (inquiry) => {
      const question = `${plan.metadata.uid} ${questionOf(inquiry)}`;
      const silence = silences.of(question, this.#now);
      if (silence) {
        this.#leave(inquiry, silence);
        return [];
      }
      try {
        await this.#ask(inquiry, world, plan, options, parts);
        silences.forget(question);
        return [];
      } catch (error) {
        parts.signal?.throwIfAborted();
        const reason = because('CannotDecide', `${aboutOf(inquiry)} cannot be told: ${messageOf(error)}`);
        const { isNews, ...unanswered } = silences.add(question, reason, this.#now);
        this.#leave(inquiry, unanswered);
        return isNews ? reason : [];
      }
    });
    return (await settleAll(asked)).flat();
  }

  async #ask<P extends KubeObject>(
    inquiry: Inquiry,
    world: World,
    plan: P,
    options: DrainOptions,
    parts: InquiryParts<P>,
  ): Promise<void> {
    const { dialect, client, inquirer, signal } = parts;
    switch (inquiry.kind) {
      case 'control-plane':
        this.#health ??= inquirer.askControlPlane(dialect.endpoints(world), signal);
        this.controlPlane = await this.#health;
        return;
      case 'preconditions':
        this.preconditions = (await dialect.preconditions?.(client, plan, signal)) ?? [];
        return;
      case 'outlook': {
        this.#look ??= inquirer.look?.(signal);
        const outlook = await this.#look?.ahead(inquiry.node, options);
        if (outlook) this.outlooks.set(inquiry.node, outlook);
        return;
      }
      case 'consent': {
        const { stage, target } = inquiry;
        const consents = (await dialect.care?.consents?.(client, stage, target, world, signal)) === true;
        this.#said.set(target.key, consents);
        if (consents) this.#memory.consents.add(attemptOf(target));
      }
    }
  }

  #leave(inquiry: Inquiry, unanswered: Unanswered): void {
    if (inquiry.kind === 'control-plane') this.controlPlane = unanswered;
    else if (inquiry.kind === 'preconditions') this.preconditions = unanswered;
    else if (inquiry.kind === 'outlook') this.outlooks.set(inquiry.node, unanswered);
    else this.#said.set(inquiry.target.key, unanswered);
  }
}

/** What the question is about, in the words of whoever reads why it has no answer. */
function aboutOf(inquiry: Inquiry): string {
  switch (inquiry.kind) {
    case 'control-plane':
      return 'whether the API servers are ready';
    case 'preconditions':
      return 'what stands against the plan';
    case 'outlook':
      return `what a drain of ${inquiry.node} would meet`;
    case 'consent':
      return `whether ${inquiry.target.name} lets the leader drain it`;
  }
}

/** Another attempt is another question. */
function questionOf(inquiry: Inquiry): string {
  return inquiry.kind === 'consent' ? attemptOf(inquiry.target) : aboutOf(inquiry);
}

function attemptOf({ key, since }: Target): string {
  return `${key}@${since}`;
}
