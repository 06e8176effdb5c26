/** Gate: the hooks of the policy for the whole plan must succeed before the first target of a run starts. */

import { rfc3339 } from '../../util/clock.ts';
import { because } from '../model/reasons.ts';
import { hooksRetriedBy, nodeRetriedBy } from '../model/tried-again.ts';
import { hookFailed } from '../reasons/hook.ts';
import { awaitedHook, planHookRuns } from './hook-runs.ts';
import { whereOf } from './hooks-succeeded.ts';
import { type Gate, type GateInput, PASS, type Verdict, waitFor } from './types.ts';

export const planHooksBefore: Gate = {
  name: 'hooks-before-plan',
  ofRollout: true,
  evaluate(input) {
    if (input.isBegun) return PASS;
    for (const run of planHookRuns(input, input.policy, 'beforePlan')) {
      const verdict = verdictOf(input, run);
      if (verdict.kind !== 'pass') return verdict;
    }
    return PASS;
  },
};

function verdictOf(
  { policy, outside: { hooks }, rollout, abilities }: GateInput,
  run: ReturnType<typeof planHookRuns>[number],
): Verdict {
  const { id, hook } = run;
  const result = hooks?.find((each) => each.id === id);
  const since = result ? { since: rfc3339(result.since) } : {};
  if (result?.state === 'succeeded') return PASS;
  if (result?.state === 'failed') {
    if (hook.ignoresFailure === true) return PASS;
    const removed = 'somebody removes the hook from the policy';
    const retried = hooksRetriedBy(abilities, rollout.source.name);
    const again =
      retried === undefined
        ? `${removed}; to run the hook again, abort the plan and ${nodeRetriedBy(abilities)}`
        : `${retried}, which runs the hook again, or ${removed}`;
    const message = `no node starts, because ${hookFailed(hook, policy, result.message)}`;
    const reason = because('PlanHookFailed', message, { policy: policy.name, hook: hook.name });
    return waitFor(reason, again, since);
  }
  const said = result?.message ?? whereOf(run);
  return { ...awaitedHook(policy, hook, undefined, said), hookRun: run, ...since };
}
