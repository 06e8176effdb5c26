/** Lists the dialects, and the lease of `refit controller`. */
import type { Dialect } from '../engine/contract/dialect.ts';
import { autopilot } from './autopilot/plan/autopilot-dialect.ts';
import { capi } from './capi/plan/capi-dialect.ts';
import { cattleView } from './cattle/plan/cattle-dialect.ts';
import { kubeadmView } from './kubeadm/plan/kubeadm-dialect.ts';

/** Shown by `refit status`. */
export const DIALECTS: readonly Dialect[] = [autopilot, cattleView, kubeadmView, capi];

/** Run by `refit controller`; the other dialects have their own executables. */
export const CONTROLLER_DIALECTS: readonly Dialect[] = [autopilot];

/** The lease of k0s itself, so that its leader and ours never act at the same time. */
export const LEADER_LEASE = {
  namespace: 'k0s-autopilot',
  name: 'k0s-autopilot-controller',
} as const;
