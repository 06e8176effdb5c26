/** Asks API servers whether they are ready: directly, or on their own hosts where this machine does not reach them. */
import type { AskReadyz } from '../../engine/observe/probes.ts';
import type { Shells } from '../../kubeadm/host.ts';
import { PRELUDE } from '../../kubeadm/scripts.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { controlPlaneOf, type Manifest } from './manifest.ts';

/** At the address that the server's certificate names; prints the HTTP status. */
const READYZ = `${PRELUDE}API=$MANIFESTS/kube-apiserver.yaml
[ -e "$API" ] || fail "kube-apiserver.yaml is missing"
CA=$(flag client-ca-file "$API")
PORT=$(flag secure-port "$API")
ADDRESS=$(flag advertise-address "$API")
case $ADDRESS in *:*) ADDRESS="[$ADDRESS]" ;; esac
CLIENT=$R\${CA%/*}/apiserver-kubelet-client
said=$(curl -qsS --noproxy '*' --max-time 5 -o /dev/null -w '%{http_code}' --cacert "$R$CA" --cert "$CLIENT.crt" \\
  --key "$CLIENT.key" "https://$ADDRESS:\${PORT:-6443}/readyz" 2>&1) || fail "\${said%000}"
echo "$said"
`;

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
      throw new RefitError(
        'REFIT_UNREACHABLE',
        `${messageOf(error)}; on its host: ${said.replaceAll(/\s*\n\s*/g, '; ')}`,
      );
    }
  };
}
