/**
 * Gate and verifier: the health checks of the policy must pass before a target starts. They must also pass after its
 * upgrade, when its node is uncordoned and works again.
 */

import type { CheckResult, HealthCheck } from '../../health/checks.ts';
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { because } from '../model/reasons.ts';
import { titleOfCheck } from '../reasons/health-check.ts';
import { unlessAccepted } from './accepted-checks.ts';
import {
  type Gate,
  type GateInput,
  nodeNameOf,
  PASS,
  type Verdict,
  wait,
  waitFor,
} from './types.ts';

/** Milliseconds after which the sentence about a failing check is updated. */
const RECHECK_MS = 60_000;

export const healthy: Gate = {
  name: 'healthy',
  ofRollout: true,
  evaluate: (input) =>
    firstWait(input, input.isBegun || input.stage.goesBack === true, (result) => result),
};

export const healthyAfter: Gate = {
  name: 'still-healthy',
  evaluate(input) {
    const { target, facts, now } = input;
    if (facts.observation.kind !== 'succeeded') return PASS;
    const node = nodeNameOf(target, facts);
    // An answer from before the upgrade says nothing about the upgraded node. Read-only commands watch nothing, so for
    // them every answer counts.
    const earliest = facts.watchedMs === undefined ? -Infinity : now - facts.watchedMs;
    return firstWait(input, true, (result) => {
      if (result.at < earliest) return undefined;
      // A check that fails only on other nodes must not make this node fail. Those nodes are verified on their own.
      const isOfOthers = result.state === 'failing' && result.nodes?.includes(node) === false;
      return isOfOthers ? { ...result, state: 'passing' } : result;
    });
  },
};

/**
 * Returns the wait for the first check that does not pass. `judged` returns the result that counts; undefined if no
 * result counts. Once the run has begun, the versions of the cluster differ, so its readiness does
 * not count any more. It does not count on the way back either, because the cluster had that version before.
 */
function firstWait(
  input: GateInput,
  isBegun: boolean,
  judged: (result: CheckResult) => CheckResult | undefined,
): Verdict {
  const { policy, now } = input;
  const { health } = input.outside;
  if (health === undefined) return PASS;
  const { checks = [], ignoresUnknown } = policy.health ?? {};
  for (const check of checks) {
    if (isBegun && check.kind === 'readiness') continue;
    const found = health.find(({ name }) => name === check.name);
    const verdict = verdictOf(check, found && judged(found), { now, policy, ignoresUnknown });
    if (verdict.kind !== 'wait') continue;
    // If the check was not asked yet, the wait stays, because there is no failure yet that a person could have accepted.
    const left = found === undefined ? verdict : unlessAccepted(input, check.name, verdict);
    if (left) return left;
  }
  return PASS;
}

interface Circumstances extends Pick<GateInput, 'now' | 'policy'> {
  readonly ignoresUnknown: boolean | undefined;
}

function verdictOf(
  { name, forMs = 0 }: HealthCheck,
  result: CheckResult | undefined,
  { now, policy, ignoresUnknown }: Circumstances,
): Verdict {
  const check = titleOfCheck(name, policy);
  if (!result || result.isPending === true) {
    const asked = [`${check} has not answered yet`, result?.message].filter(
      (part) => part !== undefined,
    );
    return wait(
      'HealthUnknown',
      asked.join(': '),
      'the check has answered, or the leader has stopped waiting for the answer',
      {
        isPassing: true,
        recheckMs: RECHECK_MS,
      },
    );
  }
  const { state, message } = result;
  const since = rfc3339(result.since);
  const more = { since, recheckMs: RECHECK_MS };
  if (state === 'unknown') {
    if (ignoresUnknown === true) return PASS;
    const ends = 'the check gets an answer, or the policy has health.onUnknown: Ignore';
    return wait('HealthUnknown', `${check} got no answer: ${message}`, ends, more);
  }
  if (state === 'failing')
    return waitFor(
      because('HealthCheckFailing', `${check} fails: ${message}`, {
        policy: policy.name,
        check: name,
      }),
      'the check passes again',
      more,
    );
  const leftMs = result.since + forMs - now;
  if (leftMs <= 0) return PASS;
  const period = formatDuration(forMs);
  return waitFor(
    because(
      'HealthCheckFailing',
      `${check} passes, but has not passed for ${period} yet: ${message}`,
      { policy: policy.name, check: name },
    ),
    `the check has passed for ${period}`,
    { since, until: rfc3339(now + leftMs), recheckMs: leftMs },
  );
}
