/**
 * Finds the situations of a plan in which a person can do something. They are data: which commands help, and in which
 * words, depends on the dialect of the plan, so a table outside of the engine says it.
 */
import type { Wait } from '../model/decision.ts';
import type { Reason, ReasonCode } from '../model/reasons.ts';
import { isInProgress, isOpenPlan, isRefusedPlan, type PlanPhase } from '../model/shown-phases.ts';
import { budgetsIn } from '../reasons/blocking-budget.ts';
import { isRoutine } from './routine-waits.ts';
import type { TargetReading } from './target-reading.ts';

/** A situation, and the names of the targets and the other facts that an advice needs. */
export type Situation =
  /** The leader will refuse the new plan. */
  | { readonly kind: 'WillBeRefused' }
  /** The plan was refused. */
  | { readonly kind: 'Refused' }
  | { readonly kind: 'MixedVersions' }
  /** The plan was edited after its end, and a leader starts it again by itself. */
  | { readonly kind: 'StartsAgain' }
  /** The plan was edited after its end, and nothing carries the edit out. `failed` are its failed targets. */
  | { readonly kind: 'Edited'; readonly isRollBack: boolean; readonly failed: readonly string[] }
  /** `refused` are targets that run the version and failed nevertheless; empty if the plan has no release to leave. */
  | {
      readonly kind: 'Aborted';
      readonly refused: readonly string[];
      readonly checks: readonly string[];
    }
  /** The plan has ended, and somebody changed these targets afterwards. */
  | { readonly kind: 'Differs'; readonly nodes: readonly string[] }
  /** The plan has no target. */
  | { readonly kind: 'Empty' }
  /** Targets failed, but run the version now. `isPartial` is true if other targets never started. */
  | { readonly kind: 'Mended'; readonly nodes: readonly string[]; readonly isPartial: boolean }
  /** Targets failed, but run the version now. The plan still runs, and they keep their slots until they are tried again. */
  | { readonly kind: 'MendedKeepsSlot'; readonly nodes: readonly string[] }
  /** Refit tries the failed targets again by itself, the first one at the time `at` in RFC 3339. */
  | ({ readonly kind: 'RetriedByItself'; readonly at: string | undefined } & FailedNodes)
  /** The targets `refused` run the version and failed afterwards, so the release may be bad. */
  | {
      readonly kind: 'ReleaseRefused';
      readonly isRollBack: boolean;
      readonly refused: readonly string[];
      /** All failed targets. */
      readonly nodes: readonly string[];
      readonly checks: readonly string[];
    }
  | ({ readonly kind: 'NodesFailed'; readonly isRollBack: boolean } & FailedNodes)
  /** The failed targets do not exist any more. */
  | { readonly kind: 'NodesGone'; readonly isRollBack: boolean; readonly nodes: readonly string[] }
  /** The plan failed without a failed target. */
  | { readonly kind: 'Failed' }
  /** The plan has ended without these targets. `held` are those that people still hold. */
  | {
      readonly kind: 'LeftOut';
      readonly nodes: readonly string[];
      readonly held: readonly string[];
      readonly isEdited: boolean;
    }
  /** The plan has ended without these targets, because the policy pins their versions. */
  | { readonly kind: 'PinnedLeftOut'; readonly nodes: readonly string[] }
  | StoppedStart;

/** A situation in which a command lets targets start. */
export type StoppedStart =
  /** Other people or tools have cordoned these Nodes. */
  | { readonly kind: 'CordonedByOthers'; readonly nodes: readonly string[] }
  | { readonly kind: 'WaveUnapproved'; readonly wave: number }
  | { readonly kind: 'Held'; readonly target: string }
  | { readonly kind: 'WindowClosed' }
  | { readonly kind: 'Blackout' };

/** Targets that failed before they ran the version, and what is known about the cause. */
export interface FailedNodes {
  readonly nodes: readonly string[];
  /** The code of the reason of all of them; undefined if they differ, or if only the node knows the cause. */
  readonly code: ReasonCode | undefined;
  /** The PodDisruptionBudgets that blocked the drains, as `namespace/name`. */
  readonly budgets: readonly string[];
}

/** What the situations depend on. */
export interface SituationFacts {
  readonly phase: PlanPhase;
  readonly cause: Pick<Reason, 'code'> | undefined;
  readonly abort: string | undefined;
  readonly paused: 'plan' | 'policy' | undefined;
  readonly startsAgain: boolean;
  /** True if the plan takes nodes back to earlier versions. */
  readonly isRollBack: boolean;
  /** True if the plan goes back from a run that is recorded. */
  readonly isRecordedRollBack: boolean;
  readonly targets: readonly SituatedTarget[];
  /** True if failed targets keep their slots until they are tried again. */
  readonly failedHoldSlots: boolean;
  readonly waits: readonly Wait[];
  /** The names of the health checks because of which targets failed. */
  readonly failedChecks: readonly string[];
}

export type SituatedTarget = Pick<
  TargetReading,
  'name' | 'phase' | 'isThere' | 'differs' | 'exists' | 'held' | 'pinned'
> & { readonly cause: Pick<Reason, 'code' | 'message'> | undefined };

/** Returns the situations of the plan. The advice about the first one helps most. */
export function situationsOf(facts: SituationFacts): readonly Situation[] {
  if (isRefusedPlan(facts, facts.cause)) return [{ kind: 'WillBeRefused' }];
  const { phase, targets } = facts;
  const isStuck = isOpenPlan(facts) && facts.failedHoldSlots;
  const hasFailed = targets.some(
    (target) => target.phase === 'failed' && (isStuck || !isMended(target)),
  );
  const hasEnded = !(isOpenPlan(facts) || phase === 'done');
  return [
    ...(hasFailed || hasEnded ? [failureSituation(facts)] : []),
    ...leftOutSituations(facts),
    ...stoppedStarts(facts),
  ];
}

/**
 * The reasons of a failure that is over once the node runs the version. Such a node was too slow, or somebody else has
 * upgraded it since.
 */
const OVER_ONCE_THERE: ReadonlySet<ReasonCode> = new Set<ReasonCode>([
  'DeadlineExceeded',
  'DrainTooLong',
  'TargetFailed',
  'TargetRefused',
  'TargetGone',
]);

/** Returns true for a failed target that needs nothing, because it runs the version now and no check refused it. */
function isMended({ isThere, cause }: SituatedTarget): boolean {
  return isThere && cause !== undefined && OVER_ONCE_THERE.has(cause.code);
}

/**
 * Returns true for a failed target that runs the version nevertheless: a health check, a hook or the node itself
 * was not good afterwards. So the release may be bad. If it is not known why the target failed, it counts as such a
 * target.
 */
function failedAfterUpgrade(target: SituatedTarget): boolean {
  return target.isThere && !isMended(target);
}

function failureSituation(facts: SituationFacts): Situation {
  const { phase, cause, abort, targets, isRollBack, failedChecks: checks } = facts;
  if (cause?.code === 'MixedVersions') return { kind: 'MixedVersions' };
  const all = targets.filter((target) => target.phase === 'failed');
  if (phase === 'edited')
    return facts.startsAgain
      ? { kind: 'StartsAgain' }
      : { kind: 'Edited', isRollBack: facts.isRecordedRollBack, failed: namesOf(all) };
  if (abort !== undefined) {
    const isLeft = phase !== 'running' && !isRollBack;
    return {
      kind: 'Aborted',
      refused: isLeft ? namesOf(all.filter(failedAfterUpgrade)) : [],
      checks,
    };
  }
  if (phase === 'differs')
    return { kind: 'Differs', nodes: namesOf(targets.filter(({ differs }) => differs)) };
  if (phase === 'empty') return { kind: 'Empty' };
  if (phase === 'invalid') return { kind: 'Refused' };
  return failedSituation(facts, all);
}

function failedSituation(facts: SituationFacts, all: readonly SituatedTarget[]): Situation {
  const { targets, isRollBack, failedChecks: checks } = facts;
  const open = all.filter((target) => !isMended(target));
  const retries = retriesIn(facts);
  const failed = open.filter(({ name }) => !retries.has(name));
  if (open.length > 0 && failed.length === 0) {
    const times = open.flatMap(({ name }) => retries.get(name)?.until ?? []);
    const [at] = times.toSorted((a, b) => Date.parse(a) - Date.parse(b));
    return { kind: 'RetriedByItself', at, ...failedNodes(open) };
  }
  if (failed.length === 0 && all.length > 0) {
    if (isOpenPlan(facts)) return { kind: 'MendedKeepsSlot', nodes: namesOf(all) };
    const isPartial = targets.some((target) => target.phase === 'pending');
    return { kind: 'Mended', nodes: namesOf(all), isPartial };
  }
  const nodes = namesOf(failed);
  const refused = namesOf(failed.filter(failedAfterUpgrade));
  if (refused.length > 0) return { kind: 'ReleaseRefused', isRollBack, refused, nodes, checks };
  if (failed.length === 0) return { kind: 'Failed' };
  if (failed.every(({ exists }) => !exists)) return { kind: 'NodesGone', isRollBack, nodes };
  return { kind: 'NodesFailed', isRollBack, ...failedNodes(failed) };
}

/** Returns the waits of the failed targets that Refit tries again by itself, by the names of the targets. */
function retriesIn({ waits }: Pick<SituationFacts, 'waits'>): ReadonlyMap<string, Wait> {
  return new Map(
    waits.flatMap((wait) =>
      wait.gate === 'retry' && wait.target !== undefined ? [[wait.target, wait] as const] : [],
    ),
  );
}

function failedNodes(failed: readonly SituatedTarget[]): FailedNodes {
  const codes = new Set(failed.map(({ cause }) => cause?.code));
  const [code] = codes;
  const isKnown = codes.size === 1 && code !== 'TargetFailed';
  const budgets = failed.flatMap(({ cause }) =>
    cause?.code === 'DrainTooLong' ? budgetsIn(cause.message) : [],
  );
  return {
    nodes: namesOf(failed),
    code: isKnown ? code : undefined,
    budgets: [...new Set(budgets)],
  };
}

/** An aborted plan starts no target any more, and a plan that starts again starts also those that it left out. */
function leftOutSituations({ abort, startsAgain, targets, phase }: SituationFacts): Situation[] {
  if (abort !== undefined || startsAgain) return [];
  // A target whose Node was deleted cannot be tried again.
  const skipped = targets.filter((target) => target.phase === 'skipped' && target.exists);
  // A retry of a pinned target alone would only leave it out once more.
  const pinned = skipped.filter((target) => target.pinned !== undefined);
  const others = skipped.filter((target) => target.pinned === undefined);
  const held = others.filter((target) => target.held !== undefined);
  const isEdited = phase === 'edited';
  return [
    ...(others.length === 0
      ? []
      : [
          {
            kind: 'LeftOut',
            nodes: namesOf(others),
            held: namesOf(held),
            isEdited,
          } as const,
        ]),
    ...(pinned.length === 0 ? [] : [{ kind: 'PinnedLeftOut', nodes: namesOf(pinned) } as const]),
  ];
}

/** What the situations that keep targets from starting depend on. */
export type StartFacts = Pick<SituationFacts, 'phase' | 'cause' | 'abort' | 'paused' | 'waits'> & {
  readonly targets: readonly Pick<SituatedTarget, 'phase'>[];
};

/** The reasons of waits that do not prevent another target from starting when people release it. */
const OF_OTHERS: ReadonlySet<ReasonCode> = new Set<ReasonCode>(['Held', 'Pinned', 'EarlierNodes']);

/**
 * Returns the situations that keep targets from starting until somebody runs a command, in the order of the waits.
 * While the plan is paused there are none, because no command but the end of the pause lets a target start.
 */
export function stoppedStarts(facts: StartFacts): StoppedStart[] {
  const { abort, paused, waits, targets } = facts;
  if (
    !isOpenPlan(facts) ||
    abort !== undefined ||
    isRefusedPlan(facts, facts.cause) ||
    paused !== undefined
  )
    return [];
  const isIdle = !targets.some(isInProgress);
  // The end of a hold helps only if nothing else keeps the held target from starting.
  const isBlocked = waits.some(
    (wait) =>
      wait.uncordon !== undefined ||
      (wait.ofStage === true && !isRoutine(wait) && !OF_OTHERS.has(wait.reason.code)),
  );
  const found = waits.flatMap(({ target, unapproved, uncordon, reason }): StoppedStart[] => {
    if (uncordon !== undefined) return [{ kind: 'CordonedByOthers', nodes: uncordon }];
    if (unapproved !== undefined) return [{ kind: 'WaveUnapproved', wave: unapproved }];
    if (reason.code === 'Held' && target !== undefined && isIdle)
      return isBlocked ? [] : [{ kind: 'Held', target }];
    if (reason.code === 'WindowClosed' || reason.code === 'WindowTooShort')
      return [{ kind: 'WindowClosed' }];
    return reason.code === 'Blackout' ? [{ kind: 'Blackout' }] : [];
  });
  return [...new Map(found.map((each) => [JSON.stringify(each), each])).values()];
}

function namesOf(targets: readonly Pick<SituatedTarget, 'name'>[]): string[] {
  return targets.map(({ name }) => name);
}
