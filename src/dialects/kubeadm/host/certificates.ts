/** Reads the certificates of a host, and finds the certificates that end soon. */
import { X509Certificate } from 'node:crypto';
import { DAY_MS, rfc3339 } from '../../../util/clock.ts';
import { ifPossible } from '../../../util/errors.ts';
import type { Problem } from './etcd.ts';

export interface Certificate {
  readonly file: string;
  readonly isAuthority: boolean;
  /** True if the kubelet of the host presents the certificate to API servers. */
  readonly isOfKubelet?: boolean;
  /** The time at which the certificate ends, in milliseconds since the Unix epoch. */
  readonly until: number;
  /** The time after which Refit reports that the certificate ends soon, in milliseconds since the Unix epoch. */
  readonly soon: number;
  /**
   * The name of the certificate for `kubeadm certs renew`; undefined if kubeadm would not create the same certificate.
   */
  readonly renewal?: string | undefined;
  /** The name of the Node, if the certificate belongs to a kubelet. */
  readonly nodeName?: string | undefined;
}

/**
 * If a certificate ends in fewer milliseconds than this, it counts as ending soon. A kubelet renews its own certificate
 * months before the end. So if its certificate ends this soon, the renewal does not work.
 */
const SOON_MS = 30 * DAY_MS;
/**
 * The same limit for the certificates of authorities. It is longer, because kubeadm does not renew these certificates
 * and people need time to replace them.
 */
const AUTHORITY_SOON_MS = 180 * DAY_MS;

/**
 * Returns the certificates of a host. Each item of `lines` has the DER in base64, the time when the file was written
 * (seconds since the Unix epoch), and the path. `keys` are the paths of the keys on the host. kubeadm renews a
 * certificate only if `keys` contains the key of its authority. `ofKubelet` are the lines about the certificates of the
 * kubelet.
 */
export function certificatesIn(
  lines: readonly string[],
  keys: readonly string[],
  ofKubelet: readonly string[],
): Certificate[] {
  const others = lines.flatMap((line) => certificateIn(line, false) ?? []);
  const all = [...others, ...ofKubelet.flatMap((line) => certificateIn(line, true) ?? [])];
  const signers = all.filter(
    ({ file, x509 }) => x509.ca && keys.includes(file.replace(/crt$/, 'key')),
  );
  return all.map(({ file, x509, written, isOfKubelet }) => {
    const isOurs = !x509.ca && !isOfKubelet && signers.some((by) => x509.verify(by.x509.publicKey));
    const [, ofEtcd, name] = /\/(etcd\/)?([^/]+?)(?:\.crt)?$/.exec(file) ?? [];
    const renewal = ofEtcd ? `etcd-${name}` : name;
    const [, nodeName] = /^CN=system:node:(.+)$/m.exec(x509.subject) ?? [];
    return {
      file,
      isAuthority: x509.ca,
      isOfKubelet,
      ...timesOf(x509, written),
      renewal: isOurs ? renewal : undefined,
      nodeName,
    };
  });
}

function certificateIn(line: string, isOfKubelet: boolean) {
  const [, text = '', written, file = ''] = /^(\S*) (\d*) (.*)$/.exec(line) ?? [];
  const x509 = ifPossible(() => new X509Certificate(Buffer.from(text, 'base64')));
  return x509 && { file, x509, written: Number(written) * 1000, isOfKubelet };
}

/**
 * Returns the end of the certificate, and the time after which it counts as ending soon. That time is at the earliest
 * the beginning of the last tenth of the certificate's lifetime. The lifetime begins at `written`, the time of the file
 * in milliseconds. The start in the certificate cannot be used, because kubeadm writes the start of the authority
 * there.
 */
export function timesOf(
  { ca, validFrom, validTo }: X509Certificate,
  written = 0,
): Pick<Certificate, 'until' | 'soon'> {
  const until = Date.parse(validTo);
  const most = Math.max(0, until - Math.max(Date.parse(validFrom), ca ? 0 : written)) / 10;
  return { until, soon: until - Math.min(ca ? AUTHORITY_SOON_MS : SOON_MS, most) };
}

/**
 * Returns a finding for each certificate that ends soon. If `isRenewed` is true, the result leaves out the certificates
 * that kubeadm can renew, because kubeadm is about to renew them.
 */
export function endingSoon(
  certificates: readonly Certificate[],
  now: number,
  isRenewed: boolean,
): Problem[] {
  return certificates.flatMap(({ file, isAuthority, isOfKubelet, until, soon, renewal }) => {
    if (now < soon || (isRenewed && renewal !== undefined)) return [];
    const byKubeadm =
      renewal === undefined
        ? 'the key of its CA is not on this host: renew the certificate on the host that has this key'
        : 'run kubeadm certs renew all';
    const ofKubelet = 'the kubelet does not renew it: see journalctl -u kubelet on the host';
    const ofLeaf = isOfKubelet ? ofKubelet : byKubeadm;
    const cure = isAuthority ? 'kubeadm never renews an authority: plan its rotation' : ofLeaf;
    return [{ found: `${file} ${until < now ? 'ended' : 'ends'} on ${dateOf(until)}`, cure }];
  });
}

export function dateOf(ms: number): string {
  return rfc3339(ms).slice(0, 10);
}
