/**
 * Makes certificates of kubeadm old. Each certificate stays the same, except that it gets other dates and a new
 * signature by the authority that made it.
 */
import { sign } from 'node:crypto';
import { readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const PKI = 'etc/kubernetes/pki';
const YEAR_MS = 365 * 86_400_000;

/**
 * The certificates that `kubeadm certs renew` renews, and the key of the authority of each certificate. The paths are
 * below the root of a machine.
 */
export const LEAVES = [
  ['apiserver', 'ca'],
  ['apiserver-kubelet-client', 'ca'],
  ['apiserver-etcd-client', 'etcd/ca'],
  ['front-proxy-client', 'front-proxy-ca'],
  ['etcd/server', 'etcd/ca'],
  ['etcd/peer', 'etcd/ca'],
  ['etcd/healthcheck-client', 'etcd/ca'],
].map(([name, authority]) => ({
  file: `${PKI}/${name}.crt`,
  authority: `${PKI}/${authority}.key`,
}));

export const KUBECONFIGS = ['admin', 'super-admin', 'controller-manager', 'scheduler'].map(
  (name) => `etc/kubernetes/${name}.conf`,
);

/**
 * Makes the certificates of a machine old. They are valid for one year, which ends at `until`, in milliseconds since
 * the Unix epoch.
 */
export async function makeOld(root: string, until: number): Promise<void> {
  for (const { file, authority } of LEAVES)
    await rewrite(join(root, file), await readKey(root, authority), until);
  const key = await readKey(root, `${PKI}/ca.key`);
  for (const file of KUBECONFIGS) await rewrite(join(root, file), key, until).catch(unlessMissing);
}

/** Ignores a missing file. Only the first control plane has a super-admin. */
function unlessMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}

const readKey = async (root: string, path: string): Promise<string> =>
  await readFile(join(root, path), 'utf8');

async function rewrite(path: string, key: string, until: number): Promise<void> {
  const text = await readFile(path, 'utf8');
  const old = (pem: string): string => withDates(pem, key, until);
  const data = /(client-certificate-data: )(\S+)/;
  const [, , embedded] = data.exec(text) ?? [];
  const next =
    embedded === undefined
      ? old(text)
      : text.replace(
          data,
          `$1${Buffer.from(old(Buffer.from(embedded, 'base64').toString())).toString('base64')}`,
        );
  await writeFile(path, next);
  const made = (until - YEAR_MS) / 1000;
  await utimes(path, made, made);
}

/**
 * Replaces the dates of a certificate. The dates and the signature keep their lengths, so all other bytes keep their
 * positions.
 */
function withDates(pem: string, key: string, until: number): string {
  const der = Buffer.from(pem.replaceAll(/-----[A-Z ]+-----|\s/g, ''), 'base64');
  // A certificate is a SEQUENCE of the signed part, the algorithm and the signature. The certificate and the signed
  // part are longer than 255 bytes, so each of these two lengths takes two bytes.
  const signed = der.subarray(4, 8 + der.readUInt16BE(6));
  const at = signed.indexOf(VALIDITY) + VALIDITY.length;
  signed.write(utcTime(until - YEAR_MS), at, 'latin1');
  signed.write(utcTime(until), at + 15, 'latin1');
  const signature = sign('sha256', signed, key);
  signature.copy(der, der.length - signature.length);
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** The bytes before the first of the two dates. Each date is a UTCTime such as `261122170500Z` after two bytes. */
const VALIDITY = Buffer.from([0x30, 0x1e, 0x17, 0x0d]);

const utcTime = (ms: number): string =>
  `${new Date(ms).toISOString().slice(2, 19).replaceAll(/[-:T]/g, '')}Z`;
