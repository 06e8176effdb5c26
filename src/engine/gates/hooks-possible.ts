/**
 * Gate: a target does not start if a hook must succeed between the drain and the work on its node, but this work does not wait for the
 * hook.
 */
import type { HookMoment } from '../../hooks/rules.ts';
import { answerOf, untilAsked } from '../model/asked.ts';
import { titleOfHook } from '../reasons/hook.ts';
import { type Gate, type GateInput, PASS, type Verdict, wait } from './types.ts';

/** Milliseconds until a node that drains itself is asked again whether it lets the leader drain it. No watch shows that. */
const RECHECK_MS = 10_000;
const MOMENTS: readonly HookMoment[] = ['afterDrain', 'beforeRestart'];
const ENDS =
  'the leader drains the node, or the policy has no such hook, or the hook has `onFailure: Ignore`';

export const hooksPossible: Gate = {
  name: 'hooks-possible',
  probesEachTarget: true,
  evaluate(input) {
    const { policy, facts, target, stage } = input;
    const hook = policy.hooks?.find((each) => MOMENTS.includes(each.when) && !each.ignoresFailure);
    const { unheld } = policy.drain;
    if (hook === undefined || !facts.node || unheld === 'withoutDrain') return PASS;
    if (unheld === 'withDrain')
      return impossible(input, hook.name, `the work on ${target.name} drains its node itself`);
    const { drainDelegation } = facts;
    if (drainDelegation.kind === 'unasked') {
      const message = `asking whether ${target.name} delegates its drain`;
      const probe = { kind: 'drain-delegation', stage, target } as const;
      return wait('DrainDelegationUnknown', message, 'the API server answers', { probe });
    }
    if (drainDelegation.kind === 'unanswered')
      return { kind: 'wait', ...untilAsked(drainDelegation) };
    return answerOf(drainDelegation) === false
      ? impossible(input, hook.name, `${target.name} drains itself`)
      : PASS;
  },
};

function impossible({ policy }: GateInput, hook: string, why: string): Verdict {
  const message = `${titleOfHook({ name: hook }, policy)} cannot run between the drain and the restart: ${why}, and does not wait for the leader`;
  return wait('HookImpossible', message, ENDS, { recheckMs: RECHECK_MS });
}
