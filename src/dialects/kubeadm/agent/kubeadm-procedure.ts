/** The procedure of the agent on a kubeadm host. Agents on other hosts do not load this file. */
import type { FindProcedure } from '../../../agent/procedure.ts';
import { fetchBinaries } from './fetch-binaries.ts';
import { findKubeadm, localShells, performOnKubeadm } from './perform-on-kubeadm.ts';

export const findKubeadmProcedure: FindProcedure = async (
  node,
  { root, options: { kubeadm } },
  abort,
) => {
  const host = await findKubeadm(node, root, localShells(abort), kubeadm);
  return {
    name: 'kubeadm',
    accepts: ['kubeadmupdate'],
    perform: async (step, journal, tools, stop) =>
      await performOnKubeadm(
        step,
        journal,
        { ...tools, host, kubeadm, fetch: fetchBinaries },
        stop,
      ),
  };
};
