/** The answers of the gate about drains, as rows for the table of all gates. */

import { drainPossible } from '../../../src/engine/gates/drain-possible.ts';
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import { answered, UNASKED, unanswered } from '../../../src/engine/model/asked.ts';
import { because } from '../../../src/engine/model/reasons.ts';
import { CLEAR, input, NODE, OBSTACLE, refusedPods, waitingForBudgets } from './gate-inputs.ts';
import { buildPolicy } from './rollout-policies.ts';

const NO_DRAIN = { ...buildPolicy().drain, enabled: false };

export const DRAIN_ROWS: readonly [Gate, string, GateInput, string][] = [
  [drainPossible, 'a target without a Node', input('worker'), 'pass'],
  [
    drainPossible,
    'nothing in the way',
    input('worker', { node: NODE, drainPreview: answered(CLEAR) }),
    'pass',
  ],
  [drainPossible, 'a Node that nobody asks about', input('worker', { node: NODE }), 'pass'],
  [
    drainPossible,
    'drain switched off',
    {
      ...input('worker', { node: NODE, drainPreview: UNASKED }),
      policy: buildPolicy({ drain: NO_DRAIN }),
    },
    'pass',
  ],
  [
    drainPossible,
    'nobody looked yet',
    input('worker', { node: NODE, drainPreview: UNASKED }),
    'wait DrainPreviewUnknown: checking what blocks a drain of n1',
  ],
  [
    drainPossible,
    'nobody can tell',
    input('worker', {
      node: NODE,
      drainPreview: unanswered({ reason: because('CannotDecide', 'no answer'), recheckMs: 2000 }),
    }),
    'wait CannotDecide: no answer',
  ],
  [
    drainPossible,
    'a node starts although a PodDisruptionBudget allows no eviction, because an operator may change the budget when it sees the cordon',
    input('worker', { node: NODE, drainPreview: answered({ ...CLEAR, obstacles: [OBSTACLE] }) }),
    'pass',
  ],
  [
    drainPossible,
    'a pod that may not go, although budgets do not prevent the start',
    input('worker', {
      node: NODE,
      drainPreview: answered({ ...CLEAR, obstacles: [OBSTACLE], refused: refusedPods(1) }),
    }),
    'wait DrainRefused: n1 cannot be drained: p1 has no controller, so nothing would create it again; spec.drain.force: true of an UpgradePolicy allows this',
  ],
  [
    drainPossible,
    'a node waits for a PodDisruptionBudget that allows no eviction if the policy waits for budgets',
    waitingForBudgets(
      input('worker', { node: NODE, drainPreview: answered({ ...CLEAR, obstacles: [OBSTACLE] }) }),
    ),
    'wait DrainBlocked: n1 cannot be drained: PodDisruptionBudget default/web blocks default/web-1: it wants all of them',
  ],
  [
    drainPossible,
    'a pod that may not go',
    input('worker', {
      node: NODE,
      drainPreview: answered({
        ...CLEAR,
        refused: [
          { pod: 'default/db', reason: 'has data in an emptyDir volume, which would be lost' },
        ],
      }),
    }),
    'wait DrainRefused: n1 cannot be drained: default/db has data in an emptyDir volume, which would be lost; spec.drain.deleteEmptyDirData: true of an UpgradePolicy allows this',
  ],
  [
    drainPossible,
    'two budgets for which the policy waits',
    waitingForBudgets(
      input('worker', {
        node: NODE,
        drainPreview: answered({
          ...CLEAR,
          obstacles: [OBSTACLE, { ...OBSTACLE, budget: 'default/db' }],
        }),
      }),
    ),
    'wait DrainBlocked: n1 cannot be drained: PodDisruptionBudget default/web blocks default/web-1: it wants all of them; PodDisruptionBudget default/db blocks default/web-1: it wants all of them',
  ],
  [
    drainPossible,
    'many pods that may not go: five are named',
    input('worker', { node: NODE, drainPreview: answered({ ...CLEAR, refused: refusedPods(7) }) }),
    'wait DrainRefused: n1 cannot be drained: p1 has no controller, so nothing would create it again; p2 has no controller, so nothing would create it again; p3 has no controller, so nothing would create it again; p4 has no controller, so nothing would create it again; p5 has no controller, so nothing would create it again; and 2 more; spec.drain.force: true of an UpgradePolicy allows this',
  ],
  [
    drainPossible,
    'five pods that may not go: all are named',
    input('worker', { node: NODE, drainPreview: answered({ ...CLEAR, refused: refusedPods(5) }) }),
    'wait DrainRefused: n1 cannot be drained: p1 has no controller, so nothing would create it again; p2 has no controller, so nothing would create it again; p3 has no controller, so nothing would create it again; p4 has no controller, so nothing would create it again; p5 has no controller, so nothing would create it again; spec.drain.force: true of an UpgradePolicy allows this',
  ],
];
