/** Reads the certificates of a host, and says which of them end soon. */
import { X509Certificate } from 'node:crypto';
import { rfc3339 } from '../util/clock.ts';
import type { Problem } from './etcd.ts';

export interface Certificate {
  /** Its path on the host. */
  readonly file: string;
  readonly isAuthority: boolean;
  /** Milliseconds since the Unix epoch. */
  readonly until: number;
}

const DAY_MS = 86_400_000;
/** kubelets renew their own certificate months before its end: one that is nearer to it does not. */
const [SOON_MS, AUTHORITY_SOON_MS] = [30 * DAY_MS, 180 * DAY_MS];

/** From base64 of DER, and the path. */
export function certificateIn(line: string): Certificate | undefined {
  const [text = '', file = ''] = line.split(/ (.*)/);
  try {
    const { ca: isAuthority, validTo } = new X509Certificate(Buffer.from(text, 'base64'));
    return { file, isAuthority, until: Date.parse(validTo) };
  } catch {
    return undefined;
  }
}

/** `isRenewed`: kubeadm is about to renew those in /etc/kubernetes, except authorities. */
export function endingSoon(certificates: readonly Certificate[], now: number, isRenewed: boolean): Problem[] {
  return certificates.flatMap(({ file, isAuthority, until }) => {
    const isOfKubelet = file.startsWith('/var/lib/kubelet/');
    if (until - now > (isAuthority ? AUTHORITY_SOON_MS : SOON_MS)) return [];
    if (isRenewed && !isAuthority && !isOfKubelet) return [];
    const ofKubelet = 'the kubelet does not renew it: see journalctl -u kubelet on the host';
    const cure = isAuthority ? 'kubeadm never renews an authority: plan its rotation' : 'run kubeadm certs renew all';
    return [
      { found: `${file} ${until < now ? 'ended' : 'ends'} on ${dateOf(until)}`, cure: isOfKubelet ? ofKubelet : cure },
    ];
  });
}

export function dateOf(ms: number): string {
  return rfc3339(ms).slice(0, 10);
}
