/** Probes what no watch shows: each question once per reconcile, all of a round at the same time, with backoff. */
import type { DrainPreview, DrainPreviewer } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { backoffDelay } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { settleAll } from '../../util/waits.ts';
import type { Dialect, Endpoint, World } from '../contract/dialect.ts';
import type { EndpointHealth, Probe, Unanswered } from '../model/decision.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Target } from '../model/rollout.ts';
import type { Known } from './gather.ts';

/** Probes that are the same for all dialects. */
export interface Prober {
  askControlPlane(
    endpoints: readonly Endpoint[],
    abort?: AbortSignal,
  ): Promise<readonly EndpointHealth[]>;
  /** Starts drain previews on one view of the cluster; without it there are none. */
  previewDrains?(abort?: AbortSignal): Pick<DrainPreviewer, 'ahead'>;
}

export interface ProbeParts {
  readonly dialect: Dialect;
  readonly client: KubeClient;
  readonly world: World;
  readonly prober: Prober;
  readonly abort?: AbortSignal | undefined;
}

/** Milliseconds: shorter than the pause before a blocked drain is looked at again. */
const PREVIEW_KEPT_MS = 4_000;

/** Does not preview a blocked drain again at once, whatever woke the plan. `now` in milliseconds by the steady clock. */
export function keptPreviews() {
  const blocked = new Map<string, { readonly drainPreview: DrainPreview; readonly at: number }>();
  return async (
    previewer: Pick<DrainPreviewer, 'ahead'>,
    node: string,
    options: DrainOptions,
    now: number,
  ) => {
    const key = `${node} ${JSON.stringify(options)}`;
    const known = blocked.get(key);
    if (known && now - known.at < PREVIEW_KEPT_MS) return known.drainPreview;
    const drainPreview = await previewer.ahead(node, options);
    const isBlocked = drainPreview.obstacles.length + drainPreview.refused.length > 0;
    if (isBlocked) blocked.set(key, { drainPreview, at: now });
    else blocked.delete(key);
    return drainPreview;
  };
}

interface Memory {
  /** Attempts whose nodes delegated their drain; that holds until the attempt ends. */
  readonly drainDelegations: Set<string>;
  readonly preview: ReturnType<typeof keptPreviews>;
  readonly backoffs: ProbeBackoff;
}

export type Answers = ReturnType<typeof answersOf>;

/** `now` in milliseconds by the steady clock, the same for all probes: those due together are repeated together. */
export function answersOf({ drainDelegations, preview, backoffs }: Memory, now: number) {
  /** By key, because the target may be about to get another attempt. */
  const delegations = new Map<string, boolean | Unanswered>();
  const drainPreviews = new Map<string, DrainPreview | Unanswered>();
  const known: { -readonly [Fact in keyof Known]: Known[Fact] } = {
    drainPreviews,
    drainDelegationOf: (target: Target) =>
      drainDelegations.has(attemptOf(target)) || delegations.get(target.key),
  };
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
        known.controlPlane = await prober.askControlPlane(dialect.endpoints(world), abort);
        return;
      case 'preconditions':
        known.preconditions = (await dialect.preconditions?.unmet(client, plan, abort)) ?? [];
        return;
      case 'drain-preview':
        previewer ??= prober.previewDrains?.(abort);
        if (previewer)
          drainPreviews.set(probe.node, await preview(previewer, probe.node, options, now));
        return;
      case 'drain-delegation': {
        const { stage, target } = probe;
        const isDelegated = await dialect.drainDelegation?.isDelegated?.(
          client,
          stage,
          target,
          world,
          abort,
        );
        delegations.set(target.key, isDelegated === true);
        if (isDelegated) drainDelegations.add(attemptOf(target));
      }
    }
  };

  const leave = (probe: Probe, unanswered: Unanswered): void => {
    if (probe.kind === 'drain-preview') drainPreviews.set(probe.node, unanswered);
    else if (probe.kind === 'drain-delegation') delegations.set(probe.target.key, unanswered);
    else if (probe.kind === 'preconditions') known.preconditions = unanswered;
    else known.controlPlane = unanswered;
  };

  /** Resolves with a reason for each probe that newly fails; rejects only on abort. */
  const add = async (
    probes: readonly Probe[],
    plan: KubeObject,
    options: DrainOptions,
    parts: ProbeParts,
  ) => {
    // A new attempt starts without backoff.
    const keyOf = (probe: Probe) =>
      probe.kind === 'drain-delegation' ? attemptOf(probe.target) : questionOf(probe);
    const questions = new Map(probes.map((probe) => [keyOf(probe), probe]));
    const asked = [...questions].map(async ([question, probe]): Promise<Reason[]> => {
      const key = `${plan.metadata.uid} ${question}`;
      const backoff = backoffs.of(key, now);
      if (backoff) {
        leave(probe, backoff);
        return [];
      }
      try {
        await ask(probe, plan, options, parts);
        backoffs.forget(key);
        return [];
      } catch (error) {
        parts.abort?.throwIfAborted();
        const reason = because(
          'CannotDecide',
          `could not check ${questionOf(probe)}: ${messageOf(error)}`,
        );
        const { isNew, ...unanswered } = backoffs.add(key, reason, now);
        leave(probe, unanswered);
        return isNew ? [reason] : [];
      }
    });
    return (await settleAll(asked)).flat();
  };

  return { known, now, add };
}

function questionOf(probe: Probe): string {
  switch (probe.kind) {
    case 'control-plane':
      return 'whether the API servers are ready';
    case 'preconditions':
      return 'the preconditions of the plan';
    case 'drain-preview':
      return `what blocks a drain of ${probe.node}`;
    case 'drain-delegation':
      return `whether ${probe.target.name} delegates its drain`;
  }
}

function attemptOf({ key, since }: Target): string {
  return `${key}@${since}`;
}

/** Of the API server of a controller. Resolves with the HTTP status of `/readyz`; rejects if no answer comes in time. */
export type AskReadyz = (host: string, name: string) => Promise<number>;

/** Asks all at once, so that a silent server does not delay the others. Never rejects. */
export async function askControlPlane(
  endpoints: readonly Endpoint[],
  ask: AskReadyz,
): Promise<EndpointHealth[]> {
  return await Promise.all(
    endpoints.map(async ({ name, host }) => {
      if (host === undefined) return { name, ready: false, detail: 'has no InternalIP' };
      try {
        const status = await ask(host, name);
        return status >= 200 && status < 300
          ? { name, ready: true }
          : { name, ready: false, detail: `/readyz says ${status}` };
      } catch (error) {
        return { name, ready: false, detail: messageOf(error) };
      }
    }),
  );
}

/** 2 s, 4 s, … one minute, without jitter: only the leader probes. */
const WAIT = { base: 4_000, cap: 120_000, random: () => 0 };

export type ProbeBackoff = ReturnType<typeof probeBackoff>;

/** The failed probes of one plan in one term of leadership. Times are milliseconds by the steady clock. */
export function probeBackoff() {
  const tries = new Map<
    string,
    { readonly reason: Reason; readonly attempt: number; readonly askAt: number }
  >();
  return {
    of(probe: string, now: number): Unanswered | undefined {
      const last = tries.get(probe);
      return last && last.askAt > now
        ? { unanswered: last.reason, recheckMs: last.askAt - now }
        : undefined;
    },
    /** The probe failed. `isNew` if it did not fail before, or for another reason. */
    add(probe: string, reason: Reason, now: number) {
      const last = tries.get(probe);
      // The backoff of a probe that nobody repeated for long starts again.
      const before = last && now - last.askAt < WAIT.cap ? last : undefined;
      const attempt = before ? before.attempt + 1 : 0;
      const recheckMs = backoffDelay(attempt, WAIT);
      tries.set(probe, { reason, attempt, askAt: now + recheckMs });
      return { unanswered: reason, recheckMs, isNew: before?.reason.message !== reason.message };
    },
    isEmpty: () => tries.size === 0,
    forget: (probe: string) => tries.delete(probe),
    /** Milliseconds until the next one is repeated; undefined if none waits. */
    nextMs(now: number): number | undefined {
      const waits = [...tries.values()].map(({ askAt }) => askAt - now).filter((ms) => ms > 0);
      return waits.length === 0 ? undefined : Math.min(...waits);
    },
  };
}
