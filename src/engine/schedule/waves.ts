/**
 * Divides the workers of a stage into the waves of an UpgradePolicy. A wave starts once every worker of the waves before it is done,
 * and the settle time of the wave before it is over. The last wave has all workers that no other wave has.
 */
import { hash } from 'node:crypto';
import { matchesLabels } from '../../kube/selectors.ts';
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { onceForEach, onceForEachWith } from '../../util/memo.ts';
import type { Refusal } from '../gates/registry.ts';
import { type DecisionContext, labelsOf, type Waiting, wait } from '../gates/types.ts';
import { isOfControlPlane } from '../model/control-plane.ts';
import type { Stage, Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { failuresAllowed, type WaveRule } from '../policy/rollout-policy.ts';
import { approvalWait } from './wave-approval.ts';

type Rules = readonly WaveRule[];
type Context = Pick<DecisionContext, 'snapshot' | 'policy'>;

/** The waves of one stage: its targets by wave, and the wave of each target by key, counted from 0. */
export interface Waves {
  readonly members: readonly (readonly Target[])[];
  readonly of: ReadonlyMap<string, number>;
  /**
   * The number of members of each wave that may fail. Undefined for a wave to which the failure budget of the plan
   * applies. In a stage whose failed targets keep their slots, the budget of the plan applies to every wave.
   */
  readonly budgets: readonly (number | undefined)[];
  /**
   * For each wave, when the last of its members was done that were deleted since, in milliseconds since the Unix epoch.
   * It is known only for the last wave with such members. The settle times of the waves before it are over.
   */
  readonly goneEnds: readonly (number | undefined)[];
}

/** Returns the waves of the stage; undefined if the policy has none. Controllers are in no wave: they come first, one at a time. */
export function wavesOf({ snapshot, policy: { waves } }: Context, stage: Stage): Waves | undefined {
  if (waves === undefined || stage.role === 'controller') return undefined;
  return divided(snapshot)(waves)(stage);
}

/** The waves are computed once for each stage of a snapshot, because every candidate of a decision asks for them. */
const divided = onceForEach((snapshot: Snapshot) =>
  onceForEach((rules: Rules) => onceForEach((stage: Stage) => divide(stage, rules, snapshot))),
);

/** A target that no wave has yet, with its labels, which are looked up once. */
interface Candidate {
  readonly target: Target;
  readonly labels: Readonly<Record<string, string>>;
}

function divide(stage: Stage, rules: Rules, snapshot: Snapshot): Waves {
  const { targets, failedHoldSlots, chosenElsewhere } = stage;
  const { uid } = snapshot.rollout.source;
  const { count = 0, lastEnd } = chosenElsewhere?.gone ?? {};
  const isChosen = chosenElsewhere !== undefined;
  const all = targets.map((target) => ({ target, labels: labelsOf(snapshot, target) }));
  let left = all.filter((each) => !isOfControlPlane(each));
  let gone = count;
  const total = left.length + gone;
  const members: Target[][] = [];
  const filledPlaces: number[] = [];
  const of = new Map<string, number>();
  const close = (wave: readonly Candidate[], filled: number): void => {
    for (const { target } of wave) of.set(target.key, members.length);
    members.push(wave.map(({ target }) => target));
    filledPlaces.push(filled);
    gone -= filled;
  };
  for (const rule of rules) {
    const places = placesIn(rule, total);
    const filled = Math.min(gone, places ?? 0);
    const free = places === undefined ? undefined : places - filled;
    const isMember = membership(rule, left, { free, uid, isChosen });
    const others: Candidate[] = [];
    const wave: Candidate[] = [];
    for (const each of left) (isMember(each) ? wave : others).push(each);
    close(wave, filled);
    left = others;
  }
  if (left.length > 0) close(left, gone);
  const budgets = members.map((wave, index) =>
    failedHoldSlots === true
      ? undefined
      : budgetIn(rules[index], wave.length + (filledPlaces[index] ?? 0)),
  );
  const lastFilled = filledPlaces.findLastIndex((filled) => filled > 0);
  const goneEnds = members.map((_, index) => (index === lastFilled ? lastEnd : undefined));
  return { members, of, budgets, goneEnds };
}

/**
 * Returns how many targets of the stage the rule selects at most; undefined if it selects them by their labels. `percent` selects
 * at least one target.
 */
function placesIn({ selector, count, percent }: WaveRule, total: number): number | undefined {
  if (selector !== undefined) return undefined;
  if (count !== undefined) return count;
  if (percent === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.floor((total * percent) / 100));
}

function budgetIn(rule: WaveRule | undefined, size: number): number | undefined {
  return rule?.maxFailures && failuresAllowed(rule.maxFailures, size);
}

/**
 * Returns a function that says which of the targets that are left the rule selects. `free` is the number of places that are
 * left in the wave. A hash of the uid of the plan and the name of the target decides who gets them, so that every leader
 * chooses the same members without a record. If another controller chooses the targets, the first ones of the list are the
 * members instead.
 */
function membership(
  { selector }: WaveRule,
  left: readonly Candidate[],
  {
    free = 0,
    uid,
    isChosen,
  }: { readonly free: number | undefined; readonly uid: string; readonly isChosen: boolean },
): (candidate: Candidate) => boolean {
  if (selector !== undefined) return ({ labels }) => matchesLabels(selector, labels);
  if (free >= left.length) return () => true;
  if (free <= 0) return () => false;
  if (isChosen) {
    const first = new Set(left.slice(0, free));
    return (candidate) => first.has(candidate);
  }
  const lots = Float64Array.from(left, ({ target }) => lotOf(target, uid)).toSorted();
  const last = lots[free - 1] ?? 0;
  return ({ target }) => lotOf(target, uid) <= last;
}

/**
 * Returns the lot of a target: the first 52 bits of the hash of its name and the uid of the plan, as a number. The targets of
 * a wave are chosen by the order of their lots. Numbers are sorted much faster than texts, and a stage may have 15,000 targets.
 */
const lotOf = onceForEachWith(({ name }: Target, uid) =>
  Number.parseInt(hash('sha256', `${uid}/${name}`).slice(0, 13), 16),
);

/**
 * Returns a function that explains why a target of a wave must wait although all targets of the earlier waves have
 * ended. The reason is that the settle time of the previous wave is not over, or that nobody has approved the wave of
 * the target. That function returns undefined if the target may start.
 */
export function waveCheck(
  context: DecisionContext,
  stage: Stage,
): (target: Target) => Refusal | undefined {
  const waves = wavesOf(context, stage);
  if (!waves) return () => undefined;
  const split = splitBySelector(context, stage);
  if (split !== undefined) return () => split;
  // The verdict for each wave, by index. It is computed once for each wave, because it is the same for all targets of
  // the wave, and because it reads every target of the earlier waves.
  const verdicts = new Map<number, Waiting | undefined>();
  return (target) => {
    const wave = waves.of.get(target.key);
    if (wave === undefined) return undefined;
    const verdict = verdicts.getOrInsertComputed(
      wave,
      () => settleOf(context, waves, wave) ?? approvalWait(context, wave),
    );
    return verdict && { ...verdict, gate: 'waves', ofRollout: true };
  };
}

/**
 * Returns why no target starts, if a selector of the waves selects some targets of a stage, but not all of them, although
 * another controller chooses which target comes next: the chosen target could wait for one that is never chosen.
 */
function splitBySelector({ snapshot, policy }: Context, stage: Stage): Refusal | undefined {
  const { advice } = stage.chosenElsewhere ?? {};
  if (advice === undefined) return undefined;
  const labels = stage.targets.map((target) => labelsOf(snapshot, target));
  const splits = policy.waves?.findIndex(({ selector }) => {
    if (selector === undefined) return false;
    const selected = labels.filter((each) => matchesLabels(selector, each)).length;
    return selected > 0 && selected < labels.length;
  });
  if (splits === undefined || splits === -1) return undefined;
  const message = `wave ${splits + 1} of UpgradePolicy ${policy.name} selects some of these nodes, but not all of them, and another controller chooses which of them comes next`;
  return {
    ...wait('WavesSplit', message, `you ${advice}, or the waves of the policy are changed`),
    gate: 'waves',
    ofRollout: true,
  };
}

function settleOf({ policy, now }: DecisionContext, { members, goneEnds }: Waves, wave: number) {
  const periods = members.slice(0, wave).map((targets, before) => {
    const { settleMs = 0 } = policy.waves?.[before] ?? {};
    const present = targets
      .filter(({ state }) => state !== 'pending')
      .map(({ since }) => Date.parse(since));
    const ends = [...present, goneEnds[before] ?? Number.NaN].filter((time) => !Number.isNaN(time));
    const until = ends.length === 0 ? Number.NEGATIVE_INFINITY : Math.max(...ends) + settleMs;
    return { before, settleMs, until };
  });
  const [last] = periods.toSorted((a, b) => b.until - a.until);
  if (!last || now >= last.until) return undefined;
  const { before, settleMs, until } = last;
  const at = rfc3339(until);
  const message = `wave ${before + 1} settles for ${formatDuration(settleMs)} before wave ${wave + 1} starts`;
  return wait('WaveSettles', message, `the settle time is over, at ${at}`, {
    recheckMs: until - now,
    until: at,
  });
}
