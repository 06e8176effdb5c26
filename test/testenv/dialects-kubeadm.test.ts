/** The table of scenes with hosts of kubeadm, on a real API server. */
import { KUBEADM } from '../dialects/clusters/kubeadm.ts';
import { playTableOnRealServer } from './scenes/play-table.ts';

playTableOnRealServer(KUBEADM);
