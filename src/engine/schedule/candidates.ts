/** Chooses the next targets in list order, so that a repeated decision is the same decision. */
import { censusFor, type DecisionContext, factsOf, gateInput } from '../gates/context.ts';
import { BEFORE, evaluate, type Refusal } from '../gates/registry.ts';
import type { Gate, Waiting } from '../gates/types.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Stage, Target } from '../model/recorded.ts';
import { withBusy } from '../policy/node-census.ts';

/** A target that a gate does not let start. With `ofRollout` the other targets were not asked. */
export interface GatedTarget extends Partial<Omit<Waiting, 'kind' | 'reason'>>, Pick<Gate, 'ofRollout'> {
  readonly target: Target;
  readonly gate: string;
  readonly reason: Reason;
}

export interface Choice {
  /** To be recorded as intended, at most `slots` of them. */
  readonly chosen: readonly Target[];
  readonly waiting: readonly GatedTarget[];
  /** Targets for which waiting cannot help. */
  readonly stopped: readonly GatedTarget[];
  /** What is wrong with the plan. Then nothing is chosen, and the rollout ends once nothing is in flight. */
  readonly refusal?: Reason;
}

/** What ends a rollout in which nothing new starts. */
export const FINISHING_ENDS = 'the nodes in progress have ended; the plan ends then';
/** Probes that found a blocked target before the targets behind it wait too: each probe is some requests, every few seconds. */
const MAX_BLOCKED_PROBES = 50;

/** A waiting worker does not stop the workers behind it. A waiting controller does: two away can cost the quorum. */
export function chooseTargets(
  context: DecisionContext,
  stage: Stage,
  candidates: readonly Target[],
  slots: number,
): Choice {
  const { snapshot, policy } = context;
  const chosen: Target[] = [];
  const waiting: GatedTarget[] = [];
  const stopped: GatedTarget[] = [];
  let census = censusFor(snapshot, policy);
  let [probes, blocked] = [0, 0];
  for (const target of candidates) {
    if (chosen.length >= slots) break;
    const verdict = evaluate(BEFORE, gateInput({ ...context, stage, target }, slots - chosen.length, census));
    if (verdict.kind === 'pass') {
      chosen.push(target);
      census = census && withBusy(census, target.name);
    }
    if (verdict.kind === 'wait') waiting.push({ target, ...verdict });
    if (verdict.kind === 'stop' && verdict.ofPlan) return refused(target, verdict, stopped);
    if (verdict.kind === 'stop') stopped.push({ target, ...verdict });
    if (waiting.length > 0 && (stage.role === 'controller' || verdict.ofRollout === true)) break;
    if (verdict.kind === 'wait' && verdict.probe) probes++;
    else if (verdict.kind === 'wait' && verdict.probesEachTarget === true) blocked++;
    // A probe is a request: at a time no more than targets could start, or than targets are blocked already.
    if (probes >= Math.max(slots, blocked) || blocked >= Math.max(slots, MAX_BLOCKED_PROBES)) break;
  }
  const refusal = chosen.length > 0 ? planRefusal(context, stage, candidates) : undefined;
  return refusal ? refused(refusal.target, refusal.verdict, stopped) : { chosen, waiting, stopped };
}

/** The first candidate for which the plan is wrong, however late its turn is: the targets before it would start in vain. */
function planRefusal(
  context: DecisionContext,
  stage: Stage,
  candidates: readonly Target[],
): { readonly target: Target; readonly verdict: Refusal } | undefined {
  const gates = BEFORE.filter(({ mayRefusePlan }) => mayRefusePlan === true);
  const passed = new Set<string | undefined>();
  for (const target of candidates) {
    const { version } = factsOf(context.snapshot, target);
    if (passed.has(version)) continue;
    const verdict = evaluate(gates, gateInput({ ...context, stage, target }, 1));
    if (verdict.kind === 'pass') passed.add(version);
    if (verdict.kind === 'stop' && verdict.ofPlan) return { target, verdict };
  }
  return undefined;
}

function refused(target: Target, { gate, reason }: Refusal, stopped: readonly GatedTarget[]): Choice {
  const why = because('FinishingInFlight', `nothing new starts: ${reason.message}`);
  return {
    chosen: [],
    waiting: [{ target, gate, reason: why, ends: FINISHING_ENDS, ofRollout: true }],
    stopped,
    refusal: reason,
  };
}
