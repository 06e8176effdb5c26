/**
 * Performs the probes. Each question is asked once per reconcile, all questions of a turn are asked at the same time,
 * and failed probes are repeated with backoff.
 */
import type { DrainPreview, DrainPreviewer } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { messageOf } from '../../util/errors.ts';
import { settleAll } from '../../util/waits.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Endpoint, World } from '../contract/world.ts';
import { type Asked, answered, type FailedRequest, UNASKED, unanswered } from '../model/asked.ts';
import type { Probe } from '../model/decision.ts';
import type { DecisionsOfPeople } from '../model/decisions-of-people.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Target } from '../model/rollout.ts';
import type { EndpointHealth } from '../model/snapshot.ts';
import type { Known } from './gather.ts';
import type { PreviewDrain } from './kept-previews.ts';
import type { ProbeBackoff } from './probe-backoff.ts';
import { readDecisions } from './read-decisions.ts';

/** The probes that work the same for all dialects. */
export interface Prober {
  askControlPlane(
    endpoints: readonly Endpoint[],
    abort?: AbortSignal,
  ): Promise<readonly EndpointHealth[]>;
  /** Starts drain previews, which all use one view of the cluster. Without this member, no drain is previewed. */
  previewDrains?(abort?: AbortSignal): Pick<DrainPreviewer, 'ahead'>;
}

export interface ProbeParts {
  readonly dialect: Dialect;
  readonly client: KubeClient;
  readonly world: World;
  readonly prober: Prober;
  /** The access to the cluster that stores the NodeRollouts. This cluster may differ from the cluster of the plans. */
  readonly nodeRollouts?: { readonly client: KubeClient } | undefined;
  readonly abort?: AbortSignal | undefined;
}

interface Memory {
  /** The attempts whose nodes delegated their drain. A delegation is valid until its attempt ends. */
  readonly drainDelegations: Set<string>;
  readonly preview: PreviewDrain;
  readonly backoffs: ProbeBackoff;
}

/** The answers to the probes of one reconcile. */
export interface Answers {
  /** What the probes have answered so far. It grows with each call of `add`. */
  readonly known: Known;
  /** The time of the reconcile in milliseconds of the monotonic clock. */
  readonly now: number;
  /**
   * Asks all of these probes at the same time, except probes in backoff. Resolves with a reason for each probe that
   * newly fails; rejects only on abort.
   */
  add(
    probes: readonly Probe[],
    plan: KubeObject,
    options: DrainOptions,
    parts: ProbeParts,
  ): Promise<readonly Reason[]>;
}

/**
 * Returns the answers to the probes of one reconcile. All its probes use the same `now`, in milliseconds of the monotonic clock, so
 * that probes which are due together are repeated together.
 */
export function answersOf({ drainDelegations, preview, backoffs }: Memory, now: number): Answers {
  /** The keys are targets, not attempts, because a target may get another attempt in the same reconcile. */
  const delegations = new Map<string, Asked<boolean>>();
  const drainPreviews = new Map<string, Asked<DrainPreview>>();
  const known: AnswerStore['known'] = {
    drainPreviews,
    drainDelegationOf: (target: Target) =>
      drainDelegations.has(attemptOf(target))
        ? DELEGATED
        : (delegations.get(target.key) ?? UNASKED),
  };
  const store = { known, delegations, drainPreviews };
  let previewer: Pick<DrainPreviewer, 'ahead'> | undefined;

  const ask = async (
    probe: Probe,
    plan: KubeObject,
    options: DrainOptions,
    parts: ProbeParts,
  ): Promise<void> => {
    const { dialect, client, world, prober, abort } = parts;
    switch (probe.kind) {
      case 'control-plane':
        known.controlPlane = answered(
          await prober.askControlPlane(dialect.endpoints(world), abort),
        );
        return;
      case 'preconditions':
        known.preconditions = answered(
          (await dialect.preconditions?.unmet(client, plan, abort)) ?? [],
        );
        return;
      case 'decisions':
        known.decisions = answered(await decisionsOn(plan, parts));
        return;
      case 'drain-preview':
        previewer ??= prober.previewDrains?.(abort);
        if (previewer)
          drainPreviews.set(
            probe.node,
            answered(await preview(previewer, probe.node, options, now)),
          );
        return;
      case 'drain-delegation': {
        const { target } = probe;
        const isDelegated = await isDrainDelegated(probe, parts);
        delegations.set(target.key, answered(isDelegated));
        if (isDelegated) drainDelegations.add(attemptOf(target));
      }
    }
  };

  const add: Answers['add'] = async (probes, plan, options, parts) => {
    const questions = new Map(probes.map((probe) => [keyOf(probe), probe]));
    const asked = [...questions].map(async ([question, probe]): Promise<Reason[]> => {
      const key = `${plan.metadata.uid} ${question}`;
      const backoff = backoffs.of(key, now);
      if (backoff) {
        leave(store, probe, backoff);
        return [];
      }
      try {
        await ask(probe, plan, options, parts);
        backoffs.forget(key);
        return [];
      } catch (error) {
        parts.abort?.throwIfAborted();
        const reason = couldNotCheck(probe, error);
        const failed = backoffs.add(key, reason, now);
        leave(store, probe, failed);
        return failed.isNew ? [reason] : [];
      }
    });
    return (await settleAll(asked)).flat();
  };

  return { known, now, add };
}

const DELEGATED = answered(true);

/** Where the answers of one reconcile are kept. */
interface AnswerStore {
  readonly known: { -readonly [Fact in keyof Known]: Known[Fact] };
  readonly delegations: Map<string, Asked<boolean>>;
  readonly drainPreviews: Map<string, Asked<DrainPreview>>;
}

/** Records that the probe got no answer. */
function leave(
  { known, delegations, drainPreviews }: AnswerStore,
  probe: Probe,
  failed: FailedRequest,
): void {
  const silence = unanswered(failed);
  switch (probe.kind) {
    case 'control-plane':
      known.controlPlane = silence;
      return;
    case 'preconditions':
      known.preconditions = silence;
      return;
    case 'decisions':
      known.decisions = silence;
      return;
    case 'drain-preview':
      drainPreviews.set(probe.node, silence);
      return;
    case 'drain-delegation':
      delegations.set(probe.target.key, silence);
  }
}

async function decisionsOn(
  plan: KubeObject,
  { dialect, client, nodeRollouts, abort }: ProbeParts,
): Promise<DecisionsOfPeople> {
  return await readDecisions(nodeRollouts?.client ?? client, dialect, plan, abort);
}

async function isDrainDelegated(
  { stage, target }: Extract<Probe, { kind: 'drain-delegation' }>,
  { dialect, client, world, abort }: ProbeParts,
): Promise<boolean> {
  const answer = await dialect.drainDelegation?.isDelegated?.(client, stage, target, world, abort);
  return answer === true;
}

/** Returns the key under which failures of a probe are recorded. A new attempt has a new key, so it starts without backoff. */
function keyOf(probe: Probe): string {
  return probe.kind === 'drain-delegation' ? attemptOf(probe.target) : questionOf(probe);
}

function couldNotCheck(probe: Probe, error: unknown): Reason {
  return because('CannotDecide', `could not check ${questionOf(probe)}: ${messageOf(error)}`);
}

function questionOf(probe: Probe): string {
  switch (probe.kind) {
    case 'control-plane':
      return 'whether the API servers are ready';
    case 'preconditions':
      return 'the preconditions of the plan';
    case 'decisions':
      return 'what people approved or accepted in the NodeRollout';
    case 'drain-preview':
      return `what blocks a drain of ${probe.node}`;
    case 'drain-delegation':
      return `whether ${probe.target.name} delegates its drain`;
  }
}

function attemptOf({ key, since }: Target): string {
  return `${key}@${since}`;
}
