/** Answers what the decision on one plan asks, as far as the user may see it. */
import type { DrainPreview } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { Dialect, World } from '../../engine/dialect.ts';
import type { Probe } from '../../engine/model/decided.ts';
import type { DrainView, EndpointHealth } from '../../engine/model/observed.ts';
import type { Reason } from '../../engine/model/reasons.ts';
import type { Known } from '../../engine/observe/gather.ts';
import type { KubeObject } from '../../kube/types.ts';
import { messageOf } from '../../util/errors.ts';
import type { Sources } from './sources.ts';

/** A drain by the leader: its state is only in the leader's memory, so it is read again here. */
export interface DrainProbe {
  readonly kind: 'drain';
  readonly node: string;
  /** Milliseconds since the Unix epoch. */
  readonly since: number;
}

export type Question = Probe | DrainProbe;

interface Subject {
  readonly dialect: Dialect;
  readonly plan: KubeObject;
  readonly world: World;
  readonly options: DrainOptions;
}

/** Questions of one kind that are asked at once: each is a request, and hundreds of nodes may need one. */
const MOST_OF_A_KIND = 20;
const CLEAR: DrainPreview = { evictable: 0, obstacles: [], refused: [] };

export class InspectionAnswers {
  readonly #sources: Sources;
  readonly #subject: Subject;
  #controlPlane: readonly EndpointHealth[] | undefined;
  #preconditions: readonly Reason[] | undefined;
  readonly #drainPreviews = new Map<string, DrainPreview>();
  readonly #delegations = new Map<string, boolean>();
  readonly #drains = new Map<string, DrainView>();
  readonly #unseen = new Set<string>();

  constructor(sources: Sources, subject: Subject) {
    this.#sources = sources;
    this.#subject = subject;
  }

  get known(): Known {
    return {
      controlPlane: this.#controlPlane,
      preconditions: this.#preconditions,
      drainPreviews: this.#drainPreviews,
      drainDelegationOf: ({ key }) => this.#delegations.get(key),
      drainOf: (node) => this.#drains.get(node),
    };
  }

  /** What could not be checked, one sentence for each kind; the decision assumes that nothing is wrong there. */
  get unseen(): readonly string[] {
    return [...this.#unseen];
  }

  knowsDrainOf(node: string): boolean {
    return this.#drains.has(node);
  }

  /** Does not reject if a request is denied. */
  async add(questions: readonly Question[]): Promise<void> {
    const counts = new Map<string, number>();
    await Promise.all(
      questions.map(async (question) => {
        const count = (counts.get(question.kind) ?? 0) + 1;
        counts.set(question.kind, count);
        await this.#answer(question, count <= MOST_OF_A_KIND);
      }),
    );
  }

  async #answer(question: Question, isAsked: boolean): Promise<void> {
    const { dialect, plan, world, options } = this.#subject;
    const sources = this.#sources;
    const asking = async <T>(what: string, ask: () => Promise<T>, neutral: T): Promise<T> =>
      isAsked ? await this.#orNeutral(what, ask, neutral) : neutral;
    switch (question.kind) {
      case 'control-plane':
        this.#controlPlane ??= await asking(
          'whether the API servers are ready',
          async () => await sources.controlPlane(dialect.endpoints(world)),
          [],
        );
        return;
      case 'preconditions':
        this.#preconditions = await asking(
          'whether objects are left that the new version does not serve',
          async () => await sources.preconditions(dialect, plan),
          [],
        );
        return;
      case 'drain-preview': {
        const { node } = question;
        this.#drainPreviews.set(
          node,
          await asking('whether nodes can be drained', async () => await sources.drainPreview(node, options), CLEAR),
        );
        return;
      }
      case 'drain-delegation': {
        const { stage, target } = question;
        this.#delegations.set(
          target.key,
          await asking(
            'who drains a node',
            async () => await sources.drainDelegation(dialect, stage, target, world),
            true,
          ),
        );
        return;
      }
      case 'drain': {
        const { node, since } = question;
        const progress = await asking('how far drains are', async () => await sources.drain(node, options), undefined);
        const state: DrainView =
          progress === undefined || progress.left === 0
            ? { kind: 'drained', since }
            : { kind: 'draining', since, ...progress };
        this.#drains.set(node, state);
      }
    }
  }

  async #orNeutral<T>(what: string, ask: () => Promise<T>, neutral: T): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      this.#unseen.add(`${what}: ${messageOf(error)}`);
      return neutral;
    }
  }
}
