/** The clusters of all dialects. */
import type { DialectUnderTest } from '../world.ts';
import { K0S } from './k0s.ts';
import { KUBEADM } from './kubeadm.ts';
import { MACHINES } from './machines.ts';
import { RANCHER } from './rancher.ts';

export const ALL_DIALECTS: readonly DialectUnderTest[] = [K0S, RANCHER, KUBEADM, MACHINES];
