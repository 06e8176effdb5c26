/**
 * Lists the gates and verifiers in the order in which they are evaluated. The first gate or verifier that does not pass
 * determines the result.
 */
import { agentAllowed } from './agent-allowed.ts';
import { agentKnown } from './agent-known.ts';
import { apiServersFirst } from './api-servers-first.ts';
import { apiServersReady } from './api-servers-ready.ts';
import { apiServersReadyAtStart } from './api-servers-ready-at-start.ts';
import { componentsWork, componentsWorkAfter } from './components-work.ts';
import { domainAvailable } from './domain-available.ts';
import { downloadsAllowed } from './downloads-allowed.ts';
import { downloadsPossible } from './downloads-possible.ts';
import { drainPossible } from './drain-possible.ts';
import { foreignWork } from './foreign-work.ts';
import { healthy, healthyAfter } from './healthy.ts';
import { hooksPossible } from './hooks-possible.ts';
import { hooksAfter, hooksAfterDrain, hooksBefore, hooksBeforeRestart } from './hooks-succeeded.ts';
import { hostsFit } from './hosts-fit.ts';
import { locksFree } from './locks-free.ts';
import { locksTaken } from './locks-taken.ts';
import { nodeReady } from './node-ready.ts';
import { nodesAvailable } from './nodes-available.ts';
import { notExcluded } from './not-excluded.ts';
import { notHeld } from './not-held.ts';
import { notPaused } from './not-paused.ts';
import { notPinned } from './not-pinned.ts';
import { othersAtWork } from './others-at-work.ts';
import { payloadPresent } from './payload-present.ts';
import { planHooksBefore } from './plan-hooks.ts';
import { platformSupported } from './platform-supported.ts';
import { policyReadable } from './policy-readable.ts';
import { restOver } from './rest-over.ts';
import { targetExists } from './target-exists.ts';
import type { Gate, GateInput, Verdict } from './types.ts';
import { versionReached } from './version-reached.ts';
import { versionsFollow } from './versions-follow.ts';
import { windowOpen } from './window-open.ts';
import { workersFirst } from './workers-first.ts';
import { writeAllowed } from './write-allowed.ts';

/** These gates are asked for every target before the rollout starts. If one of them stops one target, the whole plan is refused. */
export const BEFORE_ROLLOUT: readonly Gate[] = [targetExists, platformSupported, notExcluded];

/**
 * These gates are asked before a target is recorded as intended. The download and the hooks of the whole plan come last, so that
 * nothing is done for a target that could not start then.
 */
export const BEFORE_TARGET: readonly Gate[] = [
  policyReadable,
  hostsFit,
  downloadsAllowed,
  downloadsPossible,
  notPaused,
  healthy,
  windowOpen,
  locksFree,
  notHeld,
  notPinned,
  targetExists,
  platformSupported,
  notExcluded,
  agentAllowed,
  agentKnown,
  versionsFollow,
  apiServersFirst,
  workersFirst,
  foreignWork,
  apiServersReadyAtStart,
  componentsWork,
  othersAtWork,
  nodeReady,
  writeAllowed,
  nodesAvailable,
  domainAvailable,
  hooksPossible,
  drainPossible,
  payloadPresent,
  planHooksBefore,
];

/**
 * These gates are evaluated after the intent of a target is recorded and before the target is signalled. Only this list
 * contains the gates for locks and hooks, and they are evaluated last. The reason is that a target holds a slot while
 * it takes a lock or runs its hooks, and that the recorded intent gives its attempt the same name for every leader.
 */
export const BEFORE_SIGNAL: readonly Gate[] = [...BEFORE_TARGET, locksTaken, hooksBefore];

/** These gates are evaluated after the drain and before the leader lets the work on the node continue. */
export const BEFORE_WORK: readonly Gate[] = [hooksAfterDrain, hooksBeforeRestart];

/** These verifiers are asked after a target reported success. Its slot is free once all of them pass. */
export const AFTER_TARGET: readonly Gate[] = [
  apiServersReady,
  componentsWorkAfter,
  nodeReady,
  versionReached,
  writeAllowed,
  healthyAfter,
  restOver,
  hooksAfter,
];

export const BEFORE_NODE_ACTION: readonly Gate[] = [writeAllowed];

export type Refusal = Exclude<Verdict, { kind: 'pass' }> &
  Pick<Gate, 'ofRollout' | 'probesEachTarget' | 'isOfTargetAlone'> & { readonly gate: string };

type Passed = { readonly kind: 'pass'; readonly ofRollout?: undefined };

/**
 * Evaluates the gates in order. Returns the first verdict that is not a pass, with the name of its
 * gate.
 */
export function evaluate(gates: readonly Gate[], input: GateInput): Passed | Refusal {
  for (const gate of gates) {
    const verdict = gate.evaluate(input);
    if (verdict.kind === 'pass') continue;
    const { name, probesEachTarget = false, isOfTargetAlone = false } = gate;
    const isOfOne = verdict.kind === 'wait' && verdict.isOfThisTarget === true;
    const ofRollout = gate.ofRollout === true && !isOfOne;
    return { ...verdict, gate: name, ofRollout, probesEachTarget, isOfTargetAlone };
  }
  return { kind: 'pass' };
}
