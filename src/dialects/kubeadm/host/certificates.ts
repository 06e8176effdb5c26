/** Reads the certificates of a host, and finds those that end soon. */
import { X509Certificate } from 'node:crypto';
import { DAY_MS, rfc3339 } from '../../../util/clock.ts';
import { ifPossible } from '../../../util/errors.ts';
import type { Problem } from './etcd.ts';

export interface Certificate {
  readonly file: string;
  readonly isAuthority: boolean;
  /** True if the kubelet of the host presents the certificate to API servers. */
  readonly isOfKubelet?: boolean;
  /**
   * The time when the certificate ends, in milliseconds since the Unix epoch.
   */
  readonly until: number;
  /** The time from which on the certificate counts as ending soon, in milliseconds since the Unix epoch. */
  readonly soon: number;
  /**
   * The name that `kubeadm certs renew` has for the certificate; undefined if kubeadm would not make
   * the same certificate.
   */
  readonly renewal?: string | undefined;
  /** The name of the Node, if the certificate belongs to a kubelet. */
  readonly nodeName?: string | undefined;
}

/**
 * A certificate counts as ending soon if it has fewer milliseconds left than this. A kubelet renews its own certificate months before the
 * end, so with less time left the renewal does not work.
 */
const SOON_MS = 30 * DAY_MS;
/** The same limit for authorities. It is longer, because kubeadm does not renew authorities and people need time to replace one. */
const AUTHORITY_SOON_MS = 180 * DAY_MS;

/**
 * Returns the certificates of a host. Each line has the DER in base64, the time when the file was written (seconds since the Unix
 * epoch), and the path. `keys` are the paths of the keys on the host. kubeadm renews a certificate only if the key of its authority
 * is among them. `ofKubelet` are the lines about the certificates of the kubelet.
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
 * Returns when the certificate ends, and from when on it counts as ending soon: at the earliest when
 * a tenth of its life is left. Its life begins at `written`, the time of its file in milliseconds,
 * because the start that kubeadm writes into a certificate is that of the authority.
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
 * Returns a finding for each certificate that ends soon. If `isRenewed` is true, kubeadm is about
 * to renew the certificates that it can renew.
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
        ? 'the key of its authority is not on this host: renew it where that key is'
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
