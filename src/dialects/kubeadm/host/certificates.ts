/** Reads the certificates of a host, and says which of them end soon. */
import { X509Certificate } from 'node:crypto';
import { DAY_MS, rfc3339 } from '../../../util/clock.ts';
import { ifPossible } from '../../../util/errors.ts';
import type { Problem } from './etcd.ts';

export interface Certificate {
  readonly file: string;
  readonly isAuthority: boolean;
  /** True if the kubelet of the host shows it to API servers. */
  readonly isOfKubelet?: boolean;
  /** Milliseconds since the Unix epoch: its end, and from when on that is near. */
  readonly until: number;
  readonly soon: number;
  /** What `kubeadm certs renew` calls it; undefined if that would not make it as it is. */
  readonly renewal?: string | undefined;
  /** Name of the Node for whose kubelet it is. */
  readonly nodeName?: string | undefined;
}

/** kubelets renew their own certificate months before its end: one that is nearer to it does not. */
const SOON_MS = 30 * DAY_MS;
/** An authority is not renewed with the certificates, so people need more time to replace it. */
const AUTHORITY_SOON_MS = 180 * DAY_MS;

/** Each line has base64 of DER, when the file was written (seconds since the Unix epoch), and its path; `keys` are paths. kubeadm renews only what an authority here has made, whose key is here. */
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

/** Some have a short life from the start. `written`: kubeadm lets what it makes begin with its authority, so only the file tells when that was made. */
export function timesOf(
  { ca, validFrom, validTo }: X509Certificate,
  written = 0,
): Pick<Certificate, 'until' | 'soon'> {
  const until = Date.parse(validTo);
  const most = Math.max(0, until - Math.max(Date.parse(validFrom), ca ? 0 : written)) / 10;
  return { until, soon: until - Math.min(ca ? AUTHORITY_SOON_MS : SOON_MS, most) };
}

/** `isRenewed`: kubeadm is about to renew what it can. */
export function endingSoon(
  certificates: readonly Certificate[],
  now: number,
  isRenewed: boolean,
): Problem[] {
  return certificates.flatMap(({ file, isAuthority, isOfKubelet, until, soon, renewal }) => {
    if (now < soon || (isRenewed && renewal !== undefined)) return [];
    const byKubeadm =
      renewal === undefined
        ? 'its authority has its key elsewhere: renew it there'
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
