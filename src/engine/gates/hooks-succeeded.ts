/**
 * Gates and verifier: the hooks of the policy must succeed before a target is signalled, before the work on its drained
 * node continues, and after its upgrade is verified.
 */
import type { Hook, HookMoment, HookRun } from '../../hooks/rules.ts';
import { rfc3339 } from '../../util/clock.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { hookFailed } from '../reasons/hook.ts';
import { awaitedHook, hookRunOf } from './hook-runs.ts';
import { type Gate, type GateInput, PASS, stop, type Verdict } from './types.ts';

export const hooksBefore: Gate = {
  name: 'hooks-before',
  evaluate(input) {
    const verdict = firstUnmet(input, 'beforeDrain');
    // If the work on the node never waits for the leader, it begins with the signal. In this case the hooks
    // `beforeRestart` must also succeed before the signal.
    const isLast = input.policy.drain.unheld === 'withoutDrain';
    return verdict.kind === 'pass' && isLast ? firstUnmet(input, 'beforeRestart') : verdict;
  },
};

export const hooksAfterDrain: Gate = {
  name: 'hooks-after-drain',
  evaluate(input) {
    const { enabled, cordonOnly = false } = input.policy.drain;
    const isDrained = input.facts.node !== undefined && enabled && !cordonOnly;
    return isDrained ? firstUnmet(input, 'afterDrain') : PASS;
  },
};

export const hooksBeforeRestart: Gate = {
  name: 'hooks-before-restart',
  evaluate: (input) => firstUnmet(input, 'beforeRestart'),
};

export const hooksAfter: Gate = {
  name: 'hooks-after',
  evaluate: (input) =>
    input.facts.observation.kind === 'succeeded' ? firstUnmet(input, 'afterVerified') : PASS,
};

/** Returns the verdict of the first hook that has not succeeded. The hooks of one moment run one after the other. */
function firstUnmet(input: GateInput, when: HookMoment): Verdict {
  for (const hook of input.policy.hooks ?? []) {
    const verdict = hook.when === when ? verdictOf(input, hook) : PASS;
    if (verdict.kind !== 'pass') return verdict;
  }
  return PASS;
}

function verdictOf(input: GateInput, hook: Hook): Verdict {
  const { policy, target, stage, outside } = input;
  const run = hookRunOf({ snapshot: input, stage, target }, hook);
  const result = outside.hooks?.find(({ id }) => id === run.id);
  if (result?.state === 'succeeded') return PASS;
  if (result?.state === 'failed') {
    if (hook.ignoresFailure === true) return PASS;
    const message = `${target.name}: ${hookFailed(hook, policy, result.message)}`;
    return stop('HookFailed', message, { policy: policy.name, hook: hook.name });
  }
  // Only the leader knows the state of a run. For other processes the message at least names the Job or the server that carries the run
  // out.
  return {
    ...awaitedHook(policy, hook, target.name, result?.message ?? whereOf(run)),
    hookRun: run,
    ...(result ? { since: rfc3339(result.since) } : {}),
  };
}

/** Returns a clause that says where the run is carried out. */
export function whereOf({ id, hook: { action } }: HookRun): string {
  return action.kind === 'job'
    ? `it runs as Job ${action.namespace}/${id}`
    : `the leader calls ${printableUrl(action.url)}`;
}
