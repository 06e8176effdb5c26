/** Approves what kubelets with `serverTLSBootstrap` ask for, where the manifest says so. The rest stays pending, with a warning. */
import type { KubeClient } from '../../kube/client.ts';
import { configMaps, nodes } from '../../kube/resources.ts';
import { approved, type SigningRequest, signingRequests } from '../../kube/signing-requests.ts';
import type { Shells } from '../../kubeadm/host.ts';
import { scriptFile } from '../../kubeadm/script-file.ts';
import { PRELUDE } from '../../kubeadm/scripts.ts';
import { untilRight } from '../../kubeadm/verify.ts';
import { rfc3339 } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import type { Manifest, ManifestHost } from './manifest.ts';
import { type Known, NODE_USER, problemOfRequest } from './serving-request.ts';

export interface ApprovalParts extends Pick<Tools, 'clock' | 'log'> {
  readonly manifest: Manifest;
  readonly shells: Shells;
  /** Writes only while this process holds the lease. */
  readonly client: KubeClient;
  readonly abort: AbortSignal;
}

/** Waits for requests of kubelets that have no certificate yet. Never fails: a Node is Ready without one. */
export type ApproveServing = (hosts: readonly ManifestHost[]) => Promise<void>;

const SIGNER = 'kubernetes.io/kubelet-serving';
/** Milliseconds for a kubelet to ask and get its certificate, and for its host to answer. */
const [WITHIN_MS, LOOK_MS] = [30_000, 30_000];

export function approveServing({ manifest, shells, client, clock, log, abort }: ApprovalParts): ApproveServing {
  const left = new Set<string>();
  function leave({ metadata: { name } }: SigningRequest, problem: string): void {
    if (!left.has(name))
      log.warn('left the request for a serving certificate pending', { request: name, why: problem });
    left.add(name);
  }

  async function knownOf(host: ManifestHost, look: string): Promise<Known> {
    const { items } = await client.listAll(nodes, { abort });
    const { data } = await client.get(configMaps, 'kubeadm-config', { namespace: 'kube-system', abort });
    const [, services = ''] = /^ +serviceSubnet: *["']?([^\s"']+)/m.exec(data?.['ClusterConfiguration'] ?? '') ?? [];
    const shown = [...look.matchAll(/^address=(.*)$/gm)].map(([, found = '']) => found);
    return { hosts: manifest.hosts, host, nodes: items, shown, services };
  }

  /** True if nothing is to be waited for. */
  async function settle(host: ManifestHost): Promise<boolean> {
    const { stdout } = await shells.run(host, `${PRELUDE}${scriptFile('serving.sh')}`, LOOK_MS);
    const { items } = await client.listAll(signingRequests, { fieldSelector: `spec.signerName=${SIGNER}`, abort });
    let [isRefused, known]: [boolean, Known | undefined] = [false, undefined];
    for (const request of items.filter(({ status }) => (status?.conditions ?? []).length === 0)) {
      const maker = manifest.hosts.find(({ name }) => request.spec.username === `${NODE_USER}${name}`);
      if (!maker) leave(request, 'its maker is no host of the manifest');
      if (maker !== host) continue;
      known ??= await knownOf(host, stdout);
      const problem = problemOfRequest(request, known);
      if (problem !== undefined) leave(request, problem);
      isRefused ||= problem !== undefined;
      const answer = approved(request, 'refit kubeadm has compared it with the host', rfc3339(clock.now()));
      if (problem === undefined) await client.replace(signingRequests, answer, { subresource: 'approval', abort });
    }
    return isRefused || !stdout.includes('waits=');
  }

  return async (hosts) => {
    if (!manifest.approveServingCertificates) return;
    const until = { clock, abort, withinMs: WITHIN_MS };
    const settled = async (host: ManifestHost) => await untilRight(async () => await settle(host), Boolean, until);
    await Promise.all(hosts.map(settled)).catch((error: unknown) => {
      abort.throwIfAborted();
      log.warn('requests for serving certificates stay pending', { problem: messageOf(error) });
    });
  };
}
