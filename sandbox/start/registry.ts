/** The demonstrations. `npm start` shows the first demonstration by default. */
import { autopilot } from './autopilot.ts';
import { capi } from './capi.ts';
import { cattle } from './cattle.ts';
import type { Demonstration } from './demonstration.ts';
import { kubeadm } from './kubeadm.ts';

export const DEMONSTRATIONS: readonly [Demonstration, ...Demonstration[]] = [
  autopilot,
  cattle,
  kubeadm,
  capi,
];
