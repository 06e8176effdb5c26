/** Asks API servers whether they are ready: directly, or on their own hosts where this machine does not reach them. */
import type { AskReadyz } from '../../engine/observe/probes.ts';
import type { Shells } from '../../kubeadm/host.ts';
import { scriptFile } from '../../kubeadm/script-file.ts';
import { API_SERVER, PRELUDE } from '../../kubeadm/scripts.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { controlPlaneOf, type Manifest } from './manifest.ts';

const READYZ = `${PRELUDE}${API_SERVER}${scriptFile('readyz.sh')}`;

/** More than the script may take: a connection may have to be opened first. */
const PATIENCE_MS = 20_000;

/** Hosts may lie behind a bastion: then the kubeconfig reaches the cluster, but no single API server. */
export function throughHosts(ask: AskReadyz, manifest: Manifest, shells: Shells): AskReadyz {
  return async (address, name) => {
    try {
      return await ask(address, name);
    } catch (error) {
      const host = controlPlaneOf(manifest).find((each) => each.name === name);
      if (!host) throw error;
      const { code, stdout } = await shells.run(host, READYZ, PATIENCE_MS);
      const said = stdout.trim();
      if (code === 0) return Number(said);
      const why = said.replaceAll(/\s*\n\s*/g, '; ');
      throw new RefitError('REFIT_UNREACHABLE', `${messageOf(error)}; on its host: ${why}`);
    }
  };
}
