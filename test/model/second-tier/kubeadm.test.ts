/** Explores the larger runs of kubeadm, which take too long for the first tier. */
import { LARGE_KUBEADM_CONFIGURATIONS } from '../kubeadm/configurations.ts';
import { testKubeadmConfigurations } from '../kubeadm/explored-kubeadm.ts';

testKubeadmConfigurations(LARGE_KUBEADM_CONFIGURATIONS);
