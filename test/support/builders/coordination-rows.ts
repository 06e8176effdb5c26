/** The answers of the gates about other tools, as rows for the table of all gates. */

import { locksFree } from '../../../src/engine/gates/locks-free.ts';
import { locksTaken } from '../../../src/engine/gates/locks-taken.ts';
import { othersAtWork } from '../../../src/engine/gates/others-at-work.ts';
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import { input } from './gate-inputs.ts';
import { withParts } from './parts.ts';
import { buildPolicy } from './rollout-policies.ts';

const WORK = { tool: 'Karpenter', message: 'Karpenter is removing the node', ends: 'x' } as const;
const LOCK = { tool: 'Kured', message: 'Kured holds its lock for w9', ends: 'x' } as const;
const HELD = { tool: 'Kured', others: [LOCK] } as const;
const policy = buildPolicy({ coordinate: ['Kured', 'Karpenter'] });
const LEASE = { tool: 'DisruptionLease', others: [] } as const;
const leasing = buildPolicy({ coordinate: ['DisruptionLease'] });
const busy = input('worker', { otherWork: [WORK] });

export const COORDINATION_ROWS: readonly [Gate, string, GateInput, string][] = [
  [locksFree, 'a process that reads no locks', { ...busy, policy }, 'pass'],
  [
    locksFree,
    'no lock',
    withParts(busy, { policy, outside: { locks: [{ tool: 'Kured', others: [] }] } }),
    'pass',
  ],
  [locksFree, 'a policy without Kured', withParts(busy, { outside: { locks: [HELD] } }), 'pass'],
  [
    locksFree,
    'no answer yet',
    withParts(busy, { policy, outside: { locks: [] } }),
    'wait OtherToolAtWork: the lock of Kured is being read',
  ],
  [
    locksFree,
    'a lock',
    withParts(busy, { policy, outside: { locks: [HELD] } }),
    'wait OtherToolAtWork: Kured holds its lock for w9',
  ],
  [
    locksFree,
    'the lock of Refit',
    withParts(busy, { policy: leasing, outside: { locks: [{ ...LEASE, isOurs: true }] } }),
    'pass',
  ],
  [locksTaken, 'a process that reads no locks', { ...busy, policy: leasing }, 'pass'],
  [locksTaken, 'a policy without locks', withParts(busy, { outside: { locks: [] } }), 'pass'],
  [
    locksTaken,
    'the lock of Kured without the right to take it',
    withParts(busy, {
      policy,
      outside: { locks: [{ tool: 'Kured', others: [], isOurs: false, problem: 'Forbidden' }] },
    }),
    'wait OtherToolAtWork: Refit cannot take the lock of Kured: Forbidden',
  ],
  [
    locksTaken,
    'the lock of Refit',
    withParts(busy, { policy: leasing, outside: { locks: [{ ...LEASE, isOurs: true }] } }),
    'pass',
  ],
  [
    locksTaken,
    'a lock that is not taken yet',
    withParts(busy, { policy: leasing, outside: { locks: [{ ...LEASE, isOurs: false }] } }),
    'wait OtherToolAtWork: Refit is taking Lease refit-system/disruption',
  ],
  [
    locksTaken,
    'a lock that cannot be taken',
    withParts(busy, {
      policy: leasing,
      outside: { locks: [{ ...LEASE, isOurs: false, problem: 'Forbidden' }] },
    }),
    'wait OtherToolAtWork: Refit cannot take Lease refit-system/disruption: Forbidden',
  ],
  [othersAtWork, 'a policy without coordination', busy, 'pass'],
  [
    othersAtWork,
    'a tool that the policy does not name',
    { ...busy, policy: buildPolicy({ coordinate: ['Kured'] }) },
    'pass',
  ],
  [othersAtWork, 'no work', { ...input('worker', { otherWork: [] }), policy }, 'pass'],
  [
    othersAtWork,
    'work of a tool that the policy names',
    { ...busy, policy },
    'wait OtherToolAtWork: n1: Karpenter is removing the node',
  ],
];
