/** Owns the lists of dialects: what can be looked at, and what `refit controller` carries out under which lease. */
import type { Dialect } from '../engine/dialect.ts';
import { autopilot } from './autopilot/dialect.ts';
import { capi } from './capi/dialect.ts';
import { cattleView } from './cattle/dialect.ts';
import { kubeadmView } from './kubeadm/dialect.ts';

/** Whatever `refit status` shows, whoever carries it out. */
export const DIALECTS: readonly Dialect[] = [autopilot, cattleView, kubeadmView, capi];

/** Those of `refit controller`; the others have executables of their own. */
export const CONTROLLER_DIALECTS: readonly Dialect[] = [autopilot];

/** k0s's own: its leader and ours take turns, and never act at the same time. */
export const LEADER_LEASE = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' } as const;
