/** Defines the list of the dialects. */
import type { Dialect } from '../engine/contract/dialect.ts';
import { autopilot } from './autopilot/plan/autopilot-dialect.ts';
import { capi } from './capi/plan/capi-dialect.ts';
import { cattleView } from './cattle/plan/cattle-dialect.ts';
import { kubeadmView } from './kubeadm/plan/kubeadm-dialect.ts';

/** All dialects. Read-only commands such as `refit status` show the plans of all of them. */
export const DIALECTS: readonly Dialect[] = [autopilot, cattleView, kubeadmView, capi];

/** The dialects whose plans `refit controller` carries out. The other dialects have their own executables. */
export const CONTROLLER_DIALECTS: readonly Dialect[] = [autopilot];
