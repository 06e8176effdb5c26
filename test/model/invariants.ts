/** The invariants of every state, each with a sentence that explains it and with the code that ensures it. */

import { isFinal } from '../../src/signal/names.ts';
import { decodePrefetch } from '../../src/signal/prefetch.ts';
import {
  type Configuration,
  isTakenOver,
  type NodeSpec,
  qualityOn,
  SENT_BY_K0S,
} from './cluster.ts';
import { ABOUT_CORDONS } from './cordon-invariants.ts';
import type { Glance, NodeGlance } from './glance.ts';
import { isInMotion } from './host.ts';
import { isOpen, isRolledBack, runsAnother } from './node-predicates.ts';
import { ABOUT_PLAN_HOOKS } from './plan-hook-invariants.ts';
import { ABOUT_POLICIES } from './policy-invariants.ts';
import type { StatedInvariant } from './stated-invariant.ts';
import { ABOUT_WAYS_BACK } from './way-back-invariants.ts';

const OUTSIDE = '`test/testenv/plan.test.ts`, `test/agent/kill-runs.test.ts`';

const ABOUT_MOTION: readonly StatedInvariant[] = [
  {
    name: 'one-controller-in-motion',
    sentence: 'At most one controller is in motion.',
    upheldBy:
      '`src/engine/schedule/slots.ts`: controllers share one slot; a controller holds this slot from its recorded intent until its recorded end',
    alsoSeenBy: OUTSIDE,
    holds: ({ nodes }) => moving(nodes, 'controller').length <= 1,
  },
  {
    name: 'controllers-before-workers',
    sentence:
      'While a worker is in motion and its signal has not ended, every controller runs at least the version to which the signal upgrades the worker.',
    upheldBy:
      '`src/engine/model/rollout.ts`: only the first stage with an unsettled target is active; `src/engine/gates/foreign-work.ts` ensures this across plans',
    alsoSeenBy: OUTSIDE,
    holds: ({ nodes }) =>
      moving(nodes, 'worker').every(
        (worker) =>
          hasEnded(worker) ||
          nodes.every(
            (node) =>
              node.spec.role === 'worker' || runsAtLeast(node, worker.signal?.command.version),
          ),
      ),
  },
  {
    name: 'concurrent-workers',
    sentence: 'The number of workers in motion is never higher than `concurrent`.',
    upheldBy:
      '`src/engine/schedule/slots.ts`; `src/engine/execute/record.ts`: every record carries the resourceVersion that the decision used',
    alsoSeenBy: OUTSIDE,
    holds: ({ nodes }, { concurrent }) => moving(nodes, 'worker').length <= concurrent,
  },
];

const ABOUT_SIGNALS: readonly StatedInvariant[] = [
  {
    name: 'intent-before-signal',
    sentence:
      'For every signal of the plan on an object, the plan records the intent. Exceptions: a signal that is still in transit when the plan is aborted, and a signal that is left from an attempt that Refit will retry.',
    upheldBy: '`src/engine/turn/commands.ts`: Refit signals only targets whose intent is recorded',
    holds: (glance) =>
      glance.isAborted ||
      signalled(glance).every(
        (node) =>
          stateOf(glance, node) !== 'SignalPending' ||
          (isTriedAgain(glance, node) && !isOpen(node.signal)),
      ),
  },
  {
    name: 'no-signal-for-what-is-done',
    sentence:
      'If a target is recorded as done, the agent has answered every signal of this target.',
    upheldBy:
      '`src/engine/execute/writes.ts`: Refit reads the plan again after it has read the object and before it writes the object',
    holds: (glance) =>
      signalled(glance).every(
        (node) => node.signal?.status !== undefined || stateOf(glance, node) !== 'SignalCompleted',
      ),
  },
  {
    name: 'signals-within-slots',
    sentence: 'At most one controller and at most `concurrent` workers have an open signal.',
    upheldBy: '`src/engine/schedule/slots.ts`: Refit takes targets in list order, never at random',
    holds: ({ nodes }, { concurrent }) =>
      nodes.filter(({ spec, signal }) => spec.role === 'controller' && isOpen(signal)).length <=
        1 &&
      nodes.filter(({ spec, signal }) => spec.role === 'worker' && isOpen(signal)).length <=
        concurrent,
  },
  {
    name: 'one-signal-per-attempt',
    sentence:
      "A node gets one signal for an attempt, even if k0s's own leader sent it and somebody edits the id of the plan after that.",
    upheldBy:
      '`src/dialects/shared/signal-owner.ts`: Refit compares the signal with the recorded attempt if an edit may have changed the id of the plan',
    holds: ({ nodes }, configuration) =>
      nodes.every(
        ({ spec, signal }) => !isTakenOver(spec, configuration) || signal?.created === SENT_BY_K0S,
      ),
  },
  {
    name: 'ahead-within-slots',
    sentence:
      'Refit can ask waiting nodes to download before their turn. The number of these nodes is never higher than the number of nodes that may be in motion at the same time.',
    upheldBy:
      '`src/engine/turn/prefetch.ts`: Refit counts every node that it has asked to download, at any place in the list',
    alsoSeenBy: '`test/testenv/autopilot/prefetch.test.ts`',
    holds: ({ nodes, recorded }, { concurrent }) => {
      const waiting = nodes.filter(({ spec }) =>
        recorded.some(({ name, state }) => name === spec.name && state === 'SignalPending'),
      );
      return (
        waiting.filter(({ object }) => decodePrefetch(object.metadata.annotations)).length <=
        concurrent
      );
    },
  },
];

/** The results of the check for k0s's own agent that prevent Refit's agent from doing any work on the host. */
const KEEPS_OUT: readonly Configuration['ownAgent'][] = ['on', 'in doubt'];

const ABOUT_BINARIES: readonly StatedInvariant[] = [
  {
    name: 'one-agent-acts',
    sentence:
      "If k0s's own agent runs or may run, the agent of Refit begins no work. In the folder of the binary it keeps neither a staged file nor a previous file.",
    upheldBy:
      '`src/agent/steps/beside-k0s.ts`: the agent checks this before its first report; `src/agent/download/prefetcher.ts`: the agent also checks this before it downloads a version before its turn',
    alsoSeenBy: '`test/attacks/second-k0s-agent.test.ts`',
    holds: ({ nodes }, { theirs, ownAgent }) =>
      theirs === 'off' ||
      !KEEPS_OUT.includes(ownAgent) ||
      nodes.every(
        ({ journal, host: { staged, previous } }) =>
          journal.phase === 'idle' && staged === undefined && previous === undefined,
      ),
  },
  {
    name: 'runnable-binary',
    sentence: 'The path of the binary always holds a file that can be executed.',
    upheldBy:
      '`src/agent/next-step.ts`: the agent runs the new file once before the swap; `src/agent/state/durable-files.ts`: one rename replaces the file',
    alsoSeenBy: '`test/agent/crash-points.test.ts`',
    holds: ({ nodes }, configuration) =>
      nodes.every(
        ({ host: { target }, spec }) =>
          target !== undefined && qualityOn(spec, configuration, target) !== 'garbage',
      ),
  },
  {
    name: 'way-back',
    sentence:
      "As long as the file at the path of the binary has not run, there is a file at the path of the previous file, and this previous file has run. If k0s's own agent swaps the binary, that agent keeps no previous file. In this case the path of the previous file never has the wanted version.",
    upheldBy:
      '`src/agent/next-step.ts`: before the swap, the agent saves the binary that the service runs',
    alsoSeenBy: '`test/agent/crash-points.test.ts`',
    holds: ({ nodes }, { theirs }) =>
      nodes.every(({ host: { target, previous, proven }, signal }) =>
        theirs !== 'off'
          ? previous === undefined || previous !== signal?.command.version
          : proven.includes(target ?? '') || proven.includes(previous ?? ''),
      ),
  },
  {
    name: 'done-runs-it',
    sentence: 'A target that is recorded as done runs the wanted version and is not in motion.',
    upheldBy:
      '`src/agent/next-step.ts`: another process must show the version; `src/engine/gates/registry.ts`: verifiers',
    alsoSeenBy: OUTSIDE,
    holds: (glance) =>
      settled(glance, 'SignalCompleted').every(
        ({ node, command }) =>
          !isInMotion(node.host) && runsAtLeast(node, glance.versions[command]),
      ),
  },
  {
    name: 'completed-is-done',
    sentence: 'If a plan is `Completed`, it records every target as done or as skipped.',
    upheldBy: '`src/engine/assess/advance.ts`: a plan with failed targets ends as `ApplyFailed`',
    alsoSeenBy: '`test/testenv/failure-budget.test.ts`',
    holds: ({ state, recorded }) =>
      state !== 'Completed' ||
      recorded.every((target) => ['SignalCompleted', 'SignalSkipped'].includes(target.state)),
  },
  {
    name: 'rolled-back-rests',
    sentence:
      "If a target reports a roll-back, its service runs the file at the path of the binary, and no restart is pending. If k0s's own agent runs, this agent may still restart the service, but the same file runs after the restart.",
    upheldBy:
      '`src/agent/next-step.ts`: a process that was not asked to stop must show the old version',
    holds: (glance, { theirs }) =>
      settled(glance, 'SignalApplyFailed').every(
        ({ node }) =>
          !isRolledBack(node) ||
          !(theirs === 'on' ? runsAnother(node.host) : isInMotion(node.host)),
      ),
  },
  {
    name: 'downloaded-once',
    sentence:
      'No node downloads a complete payload twice in one attempt, unless the plan was aborted and the payload was removed.',
    upheldBy:
      '`src/agent/journal.ts`: the journal has a phase after the download; `src/agent/download/stage-binary.ts`: the agent uses a staged file again',
    alsoSeenBy: '`test/agent/kill-runs.test.ts`',
    holds: ({ nodes, isAborted }) =>
      isAborted || nodes.every(({ host: { fetched } }) => new Set(fetched).size === fetched.length),
  },
];

export const INVARIANTS: readonly StatedInvariant[] = [
  ...ABOUT_MOTION,
  ...ABOUT_SIGNALS,
  ...ABOUT_BINARIES,
  ...ABOUT_CORDONS,
  ...ABOUT_POLICIES,
  ...ABOUT_PLAN_HOOKS,
  ...ABOUT_WAYS_BACK,
];

function moving(nodes: readonly NodeGlance[], role: NodeSpec['role']): NodeGlance[] {
  return nodes.filter(({ spec, host }) => spec.role === role && isInMotion(host));
}

/** Returns the nodes that have a signal of this plan. A signal of an earlier plan does not count. */
function signalled({ run, nodes }: Glance): NodeGlance[] {
  return nodes.filter(({ signal }) => signal?.planId === run);
}

function isTriedAgain({ triedAgain }: Glance, { spec }: NodeGlance): boolean {
  return triedAgain.includes(spec.name);
}

/** Returns the recorded state of the target to which the node's signal belongs. */
function stateOf({ recorded }: Glance, { spec, signal }: NodeGlance): string {
  const own = recorded.find(
    ({ name, command }) => name === spec.name && command === signal?.command.id,
  );
  return own?.state ?? 'SignalPending';
}

function runsAtLeast({ host: { service } }: NodeGlance, version = ''): boolean {
  return service !== undefined && service.file >= version;
}

/** Reports whether the signal has ended. A worker that loses power after that restarts the file that it ran. */
function hasEnded({ signal }: NodeGlance): boolean {
  return isFinal(signal?.status?.status);
}

/** Returns the targets with this state, without those for whose node a later command has begun. */
function settled(
  { recorded, nodes }: Glance,
  state: string,
): { node: NodeGlance; command: number }[] {
  const begun = recorded.filter((target) => target.state !== 'SignalPending');
  return begun.flatMap((target) => {
    const isLast = !begun.some(
      ({ name, command }) => name === target.name && command > target.command,
    );
    const node = nodes.find(({ spec }) => spec.name === target.name);
    return target.state === state && isLast && node ? [{ node, command: target.command }] : [];
  });
}
