/** What the texts about plans of kubeadm need. */

import type { PlanTexts, StepShade } from '../../cli/contract/session-dialect.ts';
import { advice } from './advice.ts';
import { STEPS } from './host/step-names.ts';

export const texts: PlanTexts = {
  process: { lease: undefined, eventComponents: ['refit-kubeadm'] },
  advice,
  steps: new Map<string, StepShade>([
    [STEPS.stage, 'download'],
    [STEPS.drain, 'drain'],
    [STEPS.kubeadm, 'apply'],
    [STEPS.containerd, 'apply'],
    [STEPS.certificates, 'apply'],
    [STEPS.kubelet, 'restart'],
    [STEPS.verify, 'verify'],
  ]),
};
