/**
 * Approves the certificate requests of kubelets with `serverTLSBootstrap`, if the manifest allows it. Other requests stay
 * pending, with a warning.
 */
import type { KubeClient } from '../../../kube/client.ts';
import { approved, type SigningRequest, signingRequests } from '../../../kube/resources.ts';
import { isForbidden } from '../../../kube/status-error.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { messageOf } from '../../../util/errors.ts';
import type { BasicTools } from '../../../util/tools.ts';
import { filledScript } from '../host/filled-script.ts';
import type { Shells } from '../host/host.ts';
import { untilRight } from '../host/verify.ts';
import type { ManifestHost } from './manifest.ts';
import { type KnowledgeParts, knownAbout } from './serving-knowledge.ts';
import { type Known, NODE_USER, problemOfRequest } from './serving-request.ts';
import { limitFor } from './ssh.ts';

export interface ApprovalParts extends KnowledgeParts, BasicTools {
  readonly shells: Shells;
  /** This client writes only while this process holds the lease. */
  readonly client: KubeClient;
}

/**
 * Waits for the requests of those kubelets on the hosts that have no serving certificate yet, and approves them. A missing
 * certificate is only logged, because a Node is Ready without it.
 */
export type ApproveServing = (hosts: readonly ManifestHost[]) => Promise<void>;

const SIGNER = 'kubernetes.io/kubelet-serving';
/** The maximum number of milliseconds in which a kubelet must request its certificate and receive it. */
const WITHIN_MS = 30_000;
/** The most milliseconds for the script that reads facts on the host of the kubelet. */
const LOOK_MS = 10_000;
/**
 * The maximum number of requests of one host that are checked at a time. Somebody who stole the credentials of the host
 * can create any number of requests.
 */
const MOST_REQUESTS = 5;

export function approveServing(parts: ApprovalParts): ApproveServing {
  const { manifest, shells, client, clock, log, abort } = parts;
  const left = new Set<string>();
  function leave({ metadata: { name } }: SigningRequest, problem: string): void {
    if (!left.has(name))
      log.warn('left the request for a serving certificate pending', {
        request: name,
        why: problem,
      });
    left.add(name);
  }

  /**
   * Approves the correct requests of the host. Resolves with a text that says what is still missing; the text is empty
   * if nothing is missing. An incorrect request does not end the wait, because it may be an old request.
   */
  async function settle(host: ManifestHost): Promise<string> {
    const { stdout } = await shells.run(host, filledScript('serving.sh', {}), LOOK_MS);
    const { items } = await client.listAll(signingRequests, {
      fieldSelector: `spec.signerName=${SIGNER}`,
      abort,
    });
    const open = items.filter(({ status }) => (status?.conditions ?? []).length === 0);
    const makers = manifest.hosts.map(({ name }) => `${NODE_USER}${name}`);
    for (const request of open.filter(({ spec }) => !makers.includes(spec.username ?? '')))
      leave(request, 'the Node that made it is not a host of this run');
    const own = open.filter(({ spec }) => spec.username === `${NODE_USER}${host.name}`);
    let known: Known | undefined;
    for (const request of own.toSorted(newestFirst).slice(0, MOST_REQUESTS)) {
      known ??= await knownAbout(host, stdout, parts);
      const problem = problemOfRequest(request, known);
      if (problem !== undefined) leave(request, problem);
      const answer = approved(
        request,
        'refit kubeadm has compared it with the host',
        rfc3339(clock.now()),
      );
      if (problem === undefined)
        await client.replace(signingRequests, answer, { subresource: 'approval', abort });
    }
    return stdout.includes('waits=') ? 'its kubelet has no certificate yet' : '';
  }

  const limited = limitFor(manifest.hosts);
  /**
   * Waits until the kubelet of one host has its certificate. An error, such as a host that does not answer or a request that
   * somebody else changed, is retried and does not affect the other hosts.
   */
  async function visit(host: ManifestHost): Promise<void> {
    let isOver = false;
    const look = async (): Promise<string> =>
      await limited(async () => await settle(host)).catch((error: unknown) => {
        abort.throwIfAborted();
        isOver = isForbidden(error);
        return messageOf(error);
      });
    const until = { clock, abort, withinMs: WITHIN_MS };
    const problem = await untilRight(look, (open) => open === '' || isOver, until);
    if (problem !== '')
      log.warn('requests for serving certificates stay pending', { node: host.name, problem });
  }

  return async (hosts) => {
    if (manifest.approveServingCertificates) await Promise.all(hosts.map(visit));
  };
}

function newestFirst(left: SigningRequest, right: SigningRequest): number {
  const bornAt = ({ metadata }: SigningRequest): string => metadata.creationTimestamp ?? '';
  return bornAt(right).localeCompare(bornAt(left));
}
