/** Owns the choice of the next targets: list order, never chance, so that a repeated decision is the same decision. */

import { evaluate, type Refusal } from '../gates/chain.ts';
import { censusFor, type DecisionContext, factsOf, gateInput } from '../gates/context.ts';
import { drainPossible } from '../gates/drain-possible.ts';
import { BEFORE } from '../gates/registry.ts';
import { versionsFollow } from '../gates/versions-follow.ts';
import type { Probe } from '../model/decided.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Stage, Target } from '../model/recorded.ts';
import { withBusy } from '../policy/node-census.ts';

export interface Refused {
  readonly target: Target;
  readonly gate: string;
  readonly reason: Reason;
  readonly ends?: string;
  readonly recheckMs?: number;
  /** RFC 3339, where the gate knows. */
  readonly since?: string | undefined;
  /** RFC 3339, where it ends by itself. */
  readonly until?: string | undefined;
  readonly probe?: Probe | undefined;
  /** True where the gate says the same of every target, so that the others were not asked. */
  readonly ofRollout?: boolean;
  readonly isPassing?: boolean;
}

export interface Choice {
  /** To be recorded as intended, at most `slots` of them. */
  readonly chosen: readonly Target[];
  readonly waiting: readonly Refused[];
  /** Targets for which waiting cannot help. */
  readonly stopped: readonly Refused[];
  /** Why the plan itself cannot go on: nothing is chosen then, and it ends once nothing is in flight. */
  readonly refusal?: Reason;
}

/** What ends a rollout in which nothing new starts. */
export const FINISHING_ENDS = 'the nodes in progress have ended; the plan ends then';
/** Nodes at which a look found nothing but obstacles, before those behind them wait too: each look is some requests, every few seconds. */
const LOOKS_IN_VAIN = 50;

/** A worker whose gate says wait does not hold up those behind it. A controller does: two away can cost the quorum. */
export function chooseTargets(
  context: DecisionContext,
  stage: Stage,
  candidates: readonly Target[],
  slots: number,
): Choice {
  const { snapshot, policy } = context;
  const chosen: Target[] = [];
  const waiting: Refused[] = [];
  const stopped: Refused[] = [];
  let census = censusFor(snapshot, policy);
  let [asked, inVain] = [0, 0];
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
    if (verdict.kind === 'wait' && verdict.probe) asked++;
    else if (verdict.kind === 'wait' && verdict.gate === drainPossible.name) inVain++;
    // Each question is a request: no more of them at a time than targets could start, or than were asked for nothing.
    if (asked >= Math.max(slots, inVain) || inVain >= Math.max(slots, LOOKS_IN_VAIN)) break;
  }
  const wrong = chosen.length > 0 ? wrongVersion(context, stage, candidates) : undefined;
  return wrong ? refused(wrong.target, wrong.refusal, stopped) : { chosen, waiting, stopped };
}

/**
 * Who ends the plan when its turn comes, however far behind: what started before it would be begun for nothing. Versions
 * that may be followed are asked about once.
 */
function wrongVersion(
  context: DecisionContext,
  stage: Stage,
  candidates: readonly Target[],
): { readonly target: Target; readonly refusal: Refusal } | undefined {
  const passed = new Set<string | undefined>();
  for (const target of candidates) {
    const { version } = factsOf(context.snapshot, target);
    if (passed.has(version)) continue;
    const verdict = evaluate([versionsFollow], gateInput({ ...context, stage, target }, 1));
    if (verdict.kind === 'pass') passed.add(version);
    if (verdict.kind === 'stop' && verdict.ofPlan) return { target, refusal: verdict };
  }
  return undefined;
}

function refused(target: Target, { gate, reason }: Refusal, stopped: readonly Refused[]): Choice {
  const told = because('FinishingInFlight', `nothing new starts: ${reason.message}`);
  return {
    chosen: [],
    waiting: [{ target, gate, reason: told, ends: FINISHING_ENDS, ofRollout: true }],
    stopped,
    refusal: reason,
  };
}
