/** Owns asking what no watch shows: every question once in a reconcile, all of a round at the same time. */
import type { DrainOptions } from '../drain/options.ts';
import type { Outlook } from '../drain/outlook.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Dialect, Endpoint, World } from './dialect.ts';
import type { EndpointHealth, Inquiry, Target } from './model.ts';
import type { Reason } from './reasons.ts';

/** What is asked by ways of its own, not of the dialect. */
export interface Inquirer {
  askControlPlane(endpoints: readonly Endpoint[], signal?: AbortSignal): Promise<readonly EndpointHealth[]>;
  /** What a drain of the node would meet; nobody looks ahead where absent. */
  lookAhead?(node: string, options: DrainOptions, signal?: AbortSignal): Promise<Outlook>;
}

export interface InquiryParts<P extends KubeObject> {
  readonly dialect: Dialect<P>;
  readonly client: KubeClient;
  readonly inquirer: Inquirer;
  readonly signal?: AbortSignal | undefined;
}

/** Attempts whose nodes leave their drain to the leader: once said, that holds until their end. */
export type Consents = Set<string>;

/** The answers of one reconcile, but for consents, which outlast it. */
export class Answers {
  controlPlane: readonly EndpointHealth[] | undefined;
  preconditions: readonly Reason[] | undefined;
  readonly outlooks = new Map<string, Outlook>();
  readonly #given: Consents;
  /** By key: what is asked is asked of the target as it is about to be recorded, which may be another attempt than now. */
  readonly #said = new Map<string, boolean>();

  constructor(given: Consents) {
    this.#given = given;
  }

  /** Undefined where it was not asked. */
  consentOf(target: Target): boolean | undefined {
    return this.#given.has(attemptOf(target)) || this.#said.get(target.key);
  }

  /** Rejects where one of them cannot be answered. */
  async add<P extends KubeObject>(
    inquiries: readonly Inquiry[],
    world: World,
    plan: P,
    options: DrainOptions,
    parts: InquiryParts<P>,
  ): Promise<void> {
    const { inquirer, signal } = parts;
    const health = inquiries.some(({ kind }) => kind === 'control-plane');
    await Promise.all([
      health ? this.#askControlPlane(world, parts) : undefined,
      ...inquiries.map(async (inquiry) => {
        if (inquiry.kind === 'outlook') {
          const outlook = await inquirer.lookAhead?.(inquiry.node, options, signal);
          if (outlook) this.outlooks.set(inquiry.node, outlook);
        } else await this.#askDialect(inquiry, world, plan, parts);
      }),
    ]);
  }

  async #askControlPlane<P extends KubeObject>(world: World, parts: InquiryParts<P>): Promise<void> {
    this.controlPlane ??= await parts.inquirer.askControlPlane(parts.dialect.endpoints(world), parts.signal);
  }

  async #askDialect<P extends KubeObject>(
    inquiry: Inquiry,
    world: World,
    plan: P,
    { dialect, client, signal }: InquiryParts<P>,
  ): Promise<void> {
    if (inquiry.kind === 'preconditions') {
      this.preconditions = (await dialect.preconditions?.(client, plan, signal)) ?? [];
    } else if (inquiry.kind === 'consent') {
      const { stage, target } = inquiry;
      const consents = (await dialect.care?.consents?.(client, stage, target, world, signal)) === true;
      this.#said.set(target.key, consents);
      if (consents) this.#given.add(attemptOf(target));
    }
  }
}

function attemptOf({ key, since }: Target): string {
  return `${key}@${since}`;
}
