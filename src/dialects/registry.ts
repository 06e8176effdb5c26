/** Owns the one list of dialects, and the lease that whoever carries their plans out must hold. */
import type { Dialect } from '../engine/dialect.ts';
import { autopilot } from './autopilot/dialect.ts';

export const DIALECTS: readonly Dialect[] = [autopilot];

/** k0s's own: its leader and ours take turns, and never act at the same time. */
export const LEADER_LEASE = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' } as const;
