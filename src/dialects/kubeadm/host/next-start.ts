/**
 * Finds certificates because of which a component would not work after its next start. A component that runs now may
 * have read other files when it started, and an upgrade restarts all of them.
 */
import { X509Certificate } from 'node:crypto';
import { ifPossible } from '../../../util/errors.ts';
import { type Finding, hard, warn } from '../../../versions/findings.ts';
import { type Certificate, dateOf, endingSoon } from './certificates.ts';

export interface StartFacts {
  readonly certificates: readonly Certificate[];
  readonly staticPods: Readonly<Record<string, string | undefined>>;
  /** The kubeconfig with which the kubelet asks for a new certificate; undefined if the host has no such file. */
  readonly bootstrap?: string | undefined;
}

const ROTATED = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const ADMIN = '/etc/kubernetes/admin.conf';
/** Members of etcd use these certificates, or clients of a member on the same host. */
const OF_ETCD = /\/etcd\/[^/]*$|\/apiserver-etcd-client\.crt$/;

/**
 * Returns a refusal for each certificate that has ended and is needed at the next start, and a warning for each other
 * certificate that ends soon. If `isRenewed` is true, kubeadm is about to renew the certificates that it can renew.
 */
export function certificateFindings(facts: StartFacts, now: number, isRenewed: boolean): Finding[] {
  const stops = new Set(
    facts.certificates.filter((each) => stopsStart(each, facts, now, isRenewed)),
  );
  const others = facts.certificates.filter((each) => !stops.has(each));
  return [
    ...[...stops].map((each) => refusalOf(each)),
    ...endingSoon(others, now, isRenewed).map(({ found, cure }) =>
      warn('certificate', `${found}; ${cure}`),
    ),
  ];
}

function stopsStart(
  { file, isOfKubelet, until, renewal }: Certificate,
  { staticPods, bootstrap }: StartFacts,
  now: number,
  isRenewed: boolean,
): boolean {
  if (until >= now) return false;
  if (isOfKubelet) return bootstrap === undefined;
  // Nothing starts with this file. It is for people who must repair a cluster.
  if (file.endsWith('/super-admin.conf')) return false;
  // These files may be left over on a host that uses an etcd elsewhere.
  if (OF_ETCD.test(file) && staticPods['etcd'] === undefined) return false;
  // kubeadm reads the configuration of the cluster with this file, also for a renewal.
  return file === ADMIN || !isRenewed || renewal === undefined;
}

function refusalOf({ file, isOfKubelet, isAuthority, until }: Certificate): Finding {
  const ended = `${file} ended on ${dateOf(until)}`;
  if (isOfKubelet) {
    const found = `${ended}, so the kubelet would not start again, and the upgrade restarts it`;
    const rotated =
      file === ROTATED
        ? ''
        : `if ${ROTATED} has not ended, let client-certificate and client-key of that kubeconfig name it; otherwise `;
    const anew =
      'write a new kubeconfig for this Node with kubeadm kubeconfig user --org system:nodes on a control-plane host';
    return hard('certificate', found, `${rotated}${anew}`);
  }
  if (isAuthority)
    return hard(
      'certificate',
      `${ended}, so nothing that it signed is accepted after a restart`,
      'kubeadm never renews an authority: replace it first',
    );
  return hard(
    'certificate',
    `${ended}, and the upgrade needs it`,
    'run kubeadm certs renew all on this host, or renew the certificate where the key of its CA is, then restart the static pods',
  );
}

/**
 * Returns a finding if the kubelet will not trust the API server of its host. `lines` are the lines of `certificatesIn`,
 * and `trusted` are the certificates in base64 that the kubeconfig of the kubelet names as authorities. It is a refusal
 * only if the files prove it: the authority of the host is a root, it signed the certificate of the API server, and the
 * kubelet does not trust it.
 */
export function trustFindings(lines: readonly string[], trusted: readonly string[]): Finding[] {
  const at = (end: string): X509Certificate | undefined => {
    const line = lines.find((each) => each.endsWith(end)) ?? '';
    return certificateFrom(line.split(' ', 1)[0] ?? '');
  };
  const root = at('/pki/ca.crt');
  const known = trusted.flatMap((text) => certificateFrom(text) ?? []);
  if (root === undefined || known.length === 0) return [];
  const keyOf = ({ publicKey }: X509Certificate): string =>
    publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  if (known.some((each) => keyOf(each) === keyOf(root))) return [];
  const found =
    'the kubeconfig of the kubelet does not trust the authority in pki/ca.crt of this host';
  const server = at('/pki/apiserver.crt');
  const isProven = root.verify(root.publicKey) && server?.verify(root.publicKey) === true;
  if (!isProven) return [warn('certificate', `${found}: compare both files before the upgrade`)];
  const refusal = `${found}, which signed the certificate of the API server, so the kubelet would reach no API server after its restart`;
  return [hard('certificate', refusal, 'write that authority into certificate-authority-data')];
}

function certificateFrom(text: string): X509Certificate | undefined {
  return ifPossible(() => new X509Certificate(Buffer.from(text, 'base64')));
}
