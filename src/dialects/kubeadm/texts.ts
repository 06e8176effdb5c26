/** What the texts about plans of kubeadm need. */
import type { PlanTexts } from '../../cli/contract/dialect-module.ts';
import { advice } from './advice.ts';

export const texts: PlanTexts = {
  process: { lease: undefined, eventComponents: ['refit-kubeadm'] },
  advice,
};
