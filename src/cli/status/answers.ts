/** Answers what the decision on one plan asks and no watch shows, as far as the user may see it. */
import {
  type DrainPreview,
  type DrainPreviewer,
  drainPreviewer,
} from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { DrainState } from '../../drain/running-drains.ts';
import type { Dialect, Endpoint, World } from '../../engine/contract/dialect.ts';
import type { EndpointHealth, Probe } from '../../engine/model/decision.ts';
import { because } from '../../engine/model/reasons.ts';
import type { Rollout, Stage, Target } from '../../engine/model/rollout.ts';
import { blockedBy } from '../../engine/report/conditions.ts';
import type { Known } from '../../engine/snapshot/gather.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { runnerOf } from '../plan-runners.ts';
import type { Loaded } from './load.ts';

/** A drain by the leader: its state is only in the leader's memory, so it is read again here. */
export interface DrainProbe {
  readonly kind: 'drain';
  readonly node: string;
  /** Milliseconds since the Unix epoch. */
  readonly since: number;
}

export type Question = Probe | DrainProbe;

type Subject = Pick<Loaded, 'dialect' | 'world'> & {
  readonly plan: KubeObject;
  readonly options: DrainOptions;
};

/** Questions of one kind that are asked at once: each is a request, and hundreds of nodes may need one. */
const MOST_OF_A_KIND = 20;
/** Causes that are named of API servers that are not ready. */
const MOST_CAUSES = 2;
const CLEAR: DrainPreview = { evictable: 0, obstacles: [], refused: [] };

export type InspectionAnswers = ReturnType<typeof inspectionAnswers>;

export function inspectionAnswers(sources: Sources, { dialect, plan, world, options }: Subject) {
  const delegations = new Map<string, boolean>();
  const drains = new Map<string, DrainState>();
  /** What could not be checked, one sentence for each kind; the decision assumes that nothing is wrong there. */
  const unseen = new Set<string>();
  const known = {
    controlPlane: undefined as Known['controlPlane'],
    preconditions: undefined as Known['preconditions'],
    drainPreviews: new Map<string, DrainPreview>(),
    drainDelegationOf: ({ key }: Target) => delegations.get(key),
    drainOf: (node: string) => drains.get(node),
    refusalOf: (_rollout: Rollout, { name }: Target) => {
      const words = dialect.stallsOf?.(plan) ?? blockedBy(plan, 'TargetRefused') ?? '';
      const isOfTarget = `; ${words}`.includes(`; ${name}: the API server refuses `);
      return isOfTarget ? { unanswered: because('TargetRefused', words), recheckMs: 0 } : undefined;
    },
  } satisfies Known;
  /** Neither ready nor a reason to wait: only what the leader sees is that. */
  const seenFromHere = (health: readonly EndpointHealth[]): Known['controlPlane'] => {
    const down = health.filter(({ ready }) => !ready);
    if (down.length === 0 || runnerOf(dialect.name).runsHere) return health;
    const names = listed(down.map(({ name }) => name));
    const causes = new Set(down.map(({ detail }) => detail ?? 'not ready'));
    // Which addresses do not answer is of no use here, and it says nothing about the API servers.
    const isSilent = [...causes].every((cause) => cause.startsWith('no answer'));
    const found = isSilent
      ? `this machine gets no answer from the API server of ${names}`
      : `this machine finds the API server of ${names} not ready (${listed([...causes], MOST_CAUSES)})`;
    const message = `${found}; only the leader's check counts`;
    unseen.add(message);
    return { unanswered: because('ControlPlaneUnknown', message), recheckMs: 0 };
  };
  const answer = async (question: Question, isAsked: boolean): Promise<void> => {
    const asking = async <T>(what: string, ask: () => Promise<T>, neutral: T): Promise<T> => {
      if (!isAsked) return neutral;
      return await ask().catch((error: unknown) => {
        unseen.add(`${what}: ${messageOf(error)}`);
        return neutral;
      });
    };
    switch (question.kind) {
      case 'control-plane': {
        const ask = async () => await sources.controlPlane(dialect.endpoints(world));
        known.controlPlane ??=
          leaderFinding(plan) ??
          seenFromHere(await asking('whether the API servers are ready', ask, []));
        return;
      }
      case 'preconditions': {
        const what = 'whether objects are left that the new version does not serve';
        known.preconditions = await asking(
          what,
          async () => await sources.preconditions(dialect, plan),
          [],
        );
        return;
      }
      case 'drain-preview': {
        const ask = async () => await sources.drainPreview(question.node, options);
        known.drainPreviews.set(
          question.node,
          await asking('whether nodes can be drained', ask, CLEAR),
        );
        return;
      }
      case 'drain-delegation': {
        const { stage, target } = question;
        const ask = async () => await sources.drainDelegation(dialect, stage, target, world);
        delegations.set(target.key, await asking('who drains a node', ask, true));
        return;
      }
      case 'drain': {
        const { node, since } = question;
        const progress = await asking(
          'how far drains are',
          async () => await sources.drain(node, options),
          undefined,
        );
        const state: DrainState =
          progress === undefined || progress.left === 0
            ? { kind: 'drained', since }
            : { kind: 'draining', since, ...progress };
        drains.set(node, state);
      }
    }
  };
  /** Does not reject if a request is denied. */
  const add = async (questions: readonly Question[]): Promise<void> => {
    const kinds = [...Map.groupBy(questions, ({ kind }) => kind).values()];
    const answers = kinds.flatMap((alike) =>
      alike.map(async (each, at) => await answer(each, at < MOST_OF_A_KIND)),
    );
    await Promise.all(answers);
  };
  return { known, unseen, add };
}

/** The leader asks from another place, and writes what it finds into the conditions of the plan. */
function leaderFinding(plan: KubeObject): Known['controlPlane'] {
  const message = blockedBy(plan, 'ControlPlaneNotReady');
  return message === undefined
    ? undefined
    : { unanswered: because('ControlPlaneNotReady', message), recheckMs: 0 };
}

export type Sources = ReturnType<typeof sourcesOf>;
export type AskControlPlane = (
  endpoints: readonly Endpoint[],
) => Promise<readonly EndpointHealth[]>;

/** Milliseconds for which an answer is reused: a watch asks every second. */
const KEPT_MS = 5000;

/** Each rejects if the API server denies it or does not answer. */
export function sourcesOf(
  client: KubeClient,
  askControlPlane: AskControlPlane,
  clock: Clock,
  abort: AbortSignal,
) {
  const kept = new Map<string, { readonly at: number; readonly answer: Promise<unknown> }>();
  const once = async <T>(key: string, ask: () => Promise<T>): Promise<T> => {
    const known = kept.get(key);
    if (known && clock.monotonic() - known.at < KEPT_MS) return await (known.answer as Promise<T>);
    const answer = ask();
    kept.set(key, { at: clock.monotonic(), answer });
    return await answer;
  };
  const look = async (): Promise<DrainPreviewer> =>
    await once('look', async () => await Promise.resolve(drainPreviewer(client, abort)));
  return {
    controlPlane: askControlPlane,
    drainPreview: async (node: string, options: DrainOptions) =>
      await once(`drain preview ${node}`, async () => await (await look()).ahead(node, options)),
    drain: async (node: string, options: DrainOptions) =>
      await once(
        `drain ${node}`,
        async () => await (await look()).during(node, options, clock.now()),
      ),
    preconditions: async (dialect: Dialect, plan: KubeObject) =>
      await once(
        `preconditions ${dialect.name} ${plan.metadata.uid ?? ''}`,
        async () => (await dialect.preconditions?.unmet(client, plan, abort)) ?? [],
      ),
    drainDelegation: async (dialect: Dialect, stage: Stage, target: Target, world: World) =>
      await once(
        `drain delegation ${dialect.name} ${target.key}`,
        async () =>
          (await dialect.drainDelegation?.isDelegated?.(client, stage, target, world, abort)) ??
          false,
      ),
  };
}
