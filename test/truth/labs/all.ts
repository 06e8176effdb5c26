/** The labs of all dialects, one of each dialect. */
import { K0S_LAB } from './k0s-lab.ts';
import { KUBEADM_LAB } from './kubeadm-lab.ts';
import type { Lab } from './lab.ts';
import { MACHINE_LAB, OWNER_LAB } from './machine-lab.ts';
import { RANCHER_LAB } from './rancher-lab.ts';

export const ALL_LABS: readonly Lab[] = [K0S_LAB, RANCHER_LAB, KUBEADM_LAB, MACHINE_LAB];
/** The labs in which sequences are played. */
export const PLAYED_LABS: readonly Lab[] = [...ALL_LABS, OWNER_LAB];
