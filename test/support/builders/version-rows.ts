/** The answers of the gate about the version of a kubelet after an upgrade, as rows for the table of all gates. */
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import { versionReached } from '../../../src/engine/gates/version-reached.ts';
import type { TargetFacts } from '../../../src/engine/model/facts.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { T0 } from '../clock/times.ts';
import { resting } from './gate-inputs.ts';
import { NONE } from './observations.ts';
import { buildPolicy } from './rollout-policies.ts';

const GAP = { wanted: 'v1.36.4', reported: 'v1.36.3', work: 'Job a/b succeeded on Node n1' };
const SAID = 'VersionNotReached: n1: Job a/b succeeded on Node n1: its kubelet reports';

function after(facts: Partial<TargetFacts>, policy: Partial<RolloutPolicy> = {}): GateInput {
  const done = resting(undefined, T0);
  return { ...done, facts: { ...done.facts, ...facts }, policy: buildPolicy(policy) };
}

const virtual = 'the label type=kwok';

export const VERSION_ROWS: readonly [Gate, string, GateInput, string][] = [
  [versionReached, 'a kubelet with the version', after({}), 'pass'],
  [
    versionReached,
    'a kubelet that keeps its version',
    after({ versionGap: GAP }),
    `wait ${SAID} v1.36.3 instead of v1.36.4`,
  ],
  [
    versionReached,
    'a kubelet that reports no version',
    after({ versionGap: { ...GAP, reported: undefined } }),
    `wait ${SAID} no version instead of v1.36.4`,
  ],
  [
    versionReached,
    'work that has not succeeded yet',
    after({ versionGap: GAP, observation: NONE }),
    'pass',
  ],
  [
    versionReached,
    'a policy that trusts the Job',
    after({ versionGap: GAP }, { trustsSuccess: true }),
    'pass',
  ],
  [versionReached, 'a virtual Node', after({ versionGap: GAP, virtual }), 'pass'],
  [
    versionReached,
    'a virtual Node that counts',
    after({ versionGap: GAP, virtual }, { countsVirtual: true }),
    `wait ${SAID} v1.36.3 instead of v1.36.4`,
  ],
];
