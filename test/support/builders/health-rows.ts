/** The answers of the gate and the verifier of health checks, as rows for the table of all gates. */

import { healthy, healthyAfter } from '../../../src/engine/gates/healthy.ts';
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import { T0 } from '../clock/times.ts';
import { COMPONENT_ROWS } from './component-rows.ts';
import { input, resting } from './gate-inputs.ts';
import { withParts } from './parts.ts';
import { buildPolicy } from './rollout-policies.ts';
import { VERSION_ROWS } from './version-rows.ts';

const policy = buildPolicy({
  name: 'careful',
  health: { checks: [{ kind: 'daemonSets', name: 'daemonSets', pods: 'all' }] },
});
const PASSING = { name: 'daemonSets', state: 'passing', message: 'x', since: 0, at: T0 } as const;
const FAILING = { ...PASSING, state: 'failing', message: '2 pods are not Ready' } as const;
const SAID =
  'wait HealthCheckFailing: the health check daemonSets of UpgradePolicy careful fails: 2 pods are not Ready';
const DONE = resting(undefined, T0);

export const HEALTH_ROWS: readonly [Gate, string, GateInput, string][] = [
  ...COMPONENT_ROWS,
  ...VERSION_ROWS,
  [
    healthy,
    'a check that passes',
    withParts(input('worker'), { policy, outside: { health: [PASSING] } }),
    'pass',
  ],
  [
    healthy,
    'a check that fails',
    withParts(input('worker'), { policy, outside: { health: [FAILING] } }),
    SAID,
  ],
  [
    healthyAfter,
    'a check that passes',
    withParts(DONE, { policy, outside: { health: [PASSING] } }),
    'pass',
  ],
  [
    healthyAfter,
    'a check that fails',
    withParts(DONE, { policy, outside: { health: [FAILING] } }),
    SAID,
  ],
];
