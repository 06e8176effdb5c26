/** Invariants of the requirements of a policy or a person: waves, holds, pins and attempts. */
import { phaseOfPlan } from '../../src/dialects/autopilot/plan/states.ts';
import type { HookMoment } from '../../src/hooks/rules.ts';
import { holdOn } from '../../src/signal/holds.ts';
import { type Configuration, SECOND_WAVE } from './cluster.ts';
import type { Glance, NodeGlance } from './glance.ts';
import { waitsForPlanHook } from './plan-hook-invariants.ts';
import type { StatedInvariant } from './stated-invariant.ts';

const BETWEEN: readonly HookMoment[] = ['afterDrain', 'beforeRestart'];
/** The statuses that a signal can only have after the leader has answered `Cordoning`. */
const TOLD_TO_GO_ON: readonly string[] = ['ApplyingUpdate', 'Restart', 'UnCordoning', 'Completed'];

export const ABOUT_POLICIES: readonly StatedInvariant[] = [
  {
    name: 'waves-in-turn',
    sentence:
      'No worker of a wave starts before all workers of the earlier waves have ended. Workers that are pinned or held do not count.',
    upheldBy:
      '`src/engine/schedule/order.ts`, `src/engine/schedule/waves.ts`: Refit checks the wave before each start',
    alsoSeenBy: '`test/testenv/waves.test.ts`',
    holds: (glance) =>
      glance.nodes
        .filter((node) => hasStarted(glance, node))
        .every((node) =>
          glance.nodes
            .filter(({ spec: { wave } }) => isEarlier(wave, node.spec.wave))
            .every(
              (before) => hasEnded(glance, before) || before.spec.isHeld || before.spec.isPinned,
            ),
        ),
  },
  {
    name: 'approved-before-start',
    sentence:
      'If a wave needs an approval, none of its workers starts before somebody has approved the wave.',
    upheldBy: '`src/engine/schedule/wave-approval.ts`: Refit checks the approval before each start',
    alsoSeenBy: '`test/testenv/approvals.test.ts`',
    holds: (glance, { rules }) =>
      rules.waves !== 'approved' ||
      glance.isApproved ||
      glance.nodes.every((node) => !isOfSecondWave(node) || !hasStarted(glance, node)),
  },
  {
    name: 'failures-stop-waves',
    sentence:
      'After more workers of a wave have failed than the wave allows, no worker of a later wave starts.',
    upheldBy: '`src/engine/assess/budget.ts`, `src/engine/schedule/order.ts`',
    alsoSeenBy: '`test/testenv/waves.test.ts`',
    holds: (glance, { maxFailures }) =>
      glance.nodes
        .filter((node) => hasStarted(glance, node))
        .every((node) => failedBefore(glance, node) <= maxFailures),
  },
  {
    name: 'pauses-on-failure',
    sentence:
      'With `onFailure: Pause`, a plan with more failures than allowed stays open while some nodes have not started. It starts none of these nodes until a person acts.',
    upheldBy: '`src/engine/assess/advance.ts`, `src/engine/assess/assess.ts`',
    alsoSeenBy: '`test/testenv/failure-budget.test.ts`',
    holds: (glance, { rules, maxFailures }) =>
      rules.pausesOnFailure !== true ||
      glance.isAborted ||
      inState(glance, 'SignalApplyFailed') <= maxFailures ||
      (inState(glance, 'SignalSent') === 0 &&
        (isOpenPlan(glance) || inState(glance, 'SignalPending') === 0)),
  },
  {
    name: 'one-job-per-attempt',
    sentence:
      'Each hook gets exactly one Job for each attempt of a node, even if there are several leaders.',
    upheldBy:
      '`src/engine/gates/hook-runs.ts`: every leader gives the Job of an attempt the same name',
    alsoSeenBy: '`test/testenv/hooks.test.ts`',
    holds: ({ nodes }) =>
      nodes.every(({ hookJobs }) => {
        const attempts = hookJobs.map(({ when, attempt }) => `${when} ${attempt}`);
        return new Set(attempts).size === attempts.length;
      }),
  },
  {
    name: 'job-before-drain',
    sentence:
      'No node has a signal of the plan before the Job `beforeDrain` of this attempt has succeeded. So no node is drained before that.',
    upheldBy: '`src/engine/gates/registry.ts`: `BEFORE_SIGNAL`',
    alsoSeenBy: '`test/testenv/hooks.test.ts`',
    holds: ({ nodes, run }, { rules }) =>
      rules.hooks?.includes('beforeDrain') !== true ||
      nodes.every(
        ({ signal, hookJobs }) =>
          signal?.planId !== run ||
          hookJobs.some(
            ({ when, attempt, state }) =>
              when === 'beforeDrain' && attempt === signal.created && state === 'succeeded',
          ),
      ),
  },
  {
    name: 'job-before-work',
    sentence:
      'No drained node continues before the Jobs `afterDrain` and `beforeRestart` of this attempt have succeeded.',
    upheldBy: '`src/engine/gates/registry.ts`: `BEFORE_WORK`',
    alsoSeenBy: '`test/testenv/hooks-drain.test.ts`',
    holds: ({ nodes, run }, { rules }) =>
      nodes.every(({ signal, hookJobs }) => {
        const status = signal?.status?.status ?? '';
        if (signal?.planId !== run || !TOLD_TO_GO_ON.includes(status)) return true;
        return BETWEEN.filter((each) => rules.hooks?.includes(each) === true).every((each) =>
          hookJobs.some(
            ({ when, attempt, state }) =>
              when === each && attempt === signal.created && state === 'succeeded',
          ),
        );
      }),
  },
  {
    name: 'job-before-done',
    sentence: 'No target is recorded as done before its Job `afterVerified` has succeeded.',
    upheldBy: '`src/engine/gates/registry.ts`: `AFTER_TARGET`',
    alsoSeenBy: '`test/testenv/hooks.test.ts`',
    holds: (glance, { rules }) =>
      rules.hooks?.includes('afterVerified') !== true ||
      glance.nodes.every(
        (node) =>
          recordOf(glance, node) !== 'SignalCompleted' ||
          node.hookJobs.some(
            ({ when, state }) => when === 'afterVerified' && state === 'succeeded',
          ),
      ),
  },
  {
    name: 'held-never-starts',
    sentence:
      'If a node is held before the plan begins, this node does not start while the hold lasts.',
    upheldBy: '`src/engine/gates/not-held.ts`',
    alsoSeenBy: '`test/testenv/holds.test.ts`',
    holds: (glance) => glance.nodes.every((node) => !isHeld(node) || !hasStarted(glance, node)),
  },
  {
    name: 'pinned-never-starts',
    sentence: 'If the policy pins a node to another version, the node does not start.',
    upheldBy: '`src/engine/gates/not-pinned.ts`',
    alsoSeenBy: '`test/testenv/pins.test.ts`',
    holds: (glance) =>
      glance.nodes.every((node) => !node.spec.isPinned || !hasStarted(glance, node)),
  },
  {
    name: 'no-worker-past-a-controller',
    sentence:
      'No worker starts while a controller is not done, for example because the controller is held or pinned.',
    upheldBy: '`src/engine/assess/left-out.ts`: Refit leaves out only workers',
    alsoSeenBy: '`test/testenv/holds.test.ts`',
    holds: (glance, { versions }) =>
      versions.length > 1 ||
      glance.rollsBack !== undefined ||
      glance.nodes.every(
        (node) =>
          node.spec.role === 'controller' ||
          !hasStarted(glance, node) ||
          glance.nodes.every(
            (other) =>
              other.spec.role === 'worker' || recordOf(glance, other) === 'SignalCompleted',
          ),
      ),
  },
  {
    name: 'attempts-within-policy',
    sentence: 'No node begins more attempts than `retry` of the policy allows.',
    upheldBy:
      '`src/engine/execute/retries.ts`: one write of the plan contains both the instruction to retry and the number of the attempt',
    alsoSeenBy: '`test/testenv/retry-policy.test.ts`',
    holds: ({ nodes }, { rules: { retry } }) =>
      retry === undefined ||
      nodes.every(({ host: { fetched } }) => new Set(fetched).size <= retry.attempts),
  },
];

/** Reports whether the run can continue only after a person has acted, and nothing else is in progress. */
export function waitsForPerson(glance: Glance, { rules, maxFailures }: Configuration): boolean {
  if (waitsForPlanHook(glance)) return true;
  if (glance.recorded.length === 0 || glance.isAborted) return false;
  const waiting = glance.nodes.filter((node) => recordOf(glance, node) === 'SignalPending');
  const others = glance.nodes.filter((node) => !waiting.includes(node));
  const isUnapproved = rules.waves === 'approved' && !glance.isApproved;
  const isPaused =
    rules.pausesOnFailure === true && inState(glance, 'SignalApplyFailed') > maxFailures;
  const isHeldBack = (node: NodeGlance): boolean =>
    isPaused || isKeptBack(node) || (isUnapproved && isOfSecondWave(node));
  const [controller] = waiting.filter(({ spec }) => spec.role === 'controller');
  const asked = controller ? waiting.filter(({ spec }) => spec.role === 'controller') : waiting;
  // A plan that leaves out held workers ends without upgrading them.
  const isLeftOut = (node: NodeGlance): boolean =>
    rules.leavesOutHeld === true && node.spec.role === 'worker' && isKeptBack(node);
  return (
    asked.length > 0 &&
    asked.every(isHeldBack) &&
    !asked.every(isLeftOut) &&
    others.every((node) => hasEnded(glance, node))
  );
}

function isOfSecondWave({ spec: { wave } }: NodeGlance): boolean {
  return wave === String(SECOND_WAVE);
}

function isHeld({ object }: NodeGlance): boolean {
  return holdOn(object) !== undefined;
}

function isKeptBack(node: NodeGlance): boolean {
  return isHeld(node) || node.spec.isPinned;
}

function recordOf({ recorded }: Glance, { spec }: NodeGlance): string {
  return recorded.find(({ name }) => name === spec.name)?.state ?? 'SignalPending';
}

/** How many targets are recorded in this state. */
function inState({ recorded }: Glance, state: string): number {
  return recorded.filter((target) => target.state === state).length;
}

/** Returns the number of recorded failures among the workers of the waves before the node's wave. */
function failedBefore(glance: Glance, { spec: { wave } }: NodeGlance): number {
  return glance.nodes.filter(
    (other) => isEarlier(other.spec.wave, wave) && recordOf(glance, other) === 'SignalApplyFailed',
  ).length;
}

function isEarlier(wave: string | undefined, other: string | undefined): boolean {
  return wave !== undefined && other !== undefined && wave < other;
}

function isOpenPlan({ state = '' }: Glance): boolean {
  return ['new', 'running'].includes(phaseOfPlan(state));
}

/** Reports whether the target has started: the plan records the intent, or the node has a signal of the plan. */
function hasStarted(glance: Glance, node: NodeGlance): boolean {
  const state = recordOf(glance, node);
  return (
    !['SignalPending', 'SignalSkipped', 'SignalMissingNode'].includes(state) ||
    node.signal?.planId === glance.run
  );
}

function hasEnded(glance: Glance, node: NodeGlance): boolean {
  return !['SignalPending', 'SignalSent'].includes(recordOf(glance, node));
}
