/** The certificates of a stand-in control-plane host: made as `kubeadm init` makes them, renewed as `kubeadm certs renew` does. */
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createAuthority, issueServer, type Validity } from '../../tools/controlplane/certs.ts';

const YEAR_MS = 365 * 86_400_000;
const FOLDER = 'etc/kubernetes/pki';
/** By authority. */
const NAMES = {
  ca: ['apiserver', 'apiserver-kubelet-client'],
  'front-proxy-ca': ['front-proxy-client'],
  'etcd/ca': ['apiserver-etcd-client', 'etcd/server', 'etcd/peer', 'etcd/healthcheck-client'],
} as const;
const KUBECONFIGS = ['super-admin', 'controller-manager', 'scheduler'];

export function makeCertificates(root: string, validity: Validity): void {
  for (const [authority, names] of Object.entries(NAMES)) {
    const made = createAuthority(subjectOf(authority), {
      ...validity,
      notAfter: validity.notAfter + 9 * YEAR_MS,
    });
    write(join(root, FOLDER, `${authority}.crt`), made.certificate);
    write(join(root, FOLDER, `${authority}.key`), made.key);
    for (const name of names) issueThen(root, authority, join(FOLDER, `${name}.crt`), validity);
  }
  for (const name of KUBECONFIGS) issueThen(root, 'ca', `etc/kubernetes/${name}.conf`, validity);
}

/** Renews a certificate; `name` is kubeadm's name for it. A missing certificate is not created, as with kubeadm. */
export function renewCertificate(root: string, name: string, lifeMs = YEAR_MS): string {
  const file = name.endsWith('.conf')
    ? `etc/kubernetes/${name}`
    : join(FOLDER, `${name.replace(/^etcd-/, 'etcd/')}.crt`);
  const own = file.slice(FOLDER.length + 1, -'.crt'.length);
  const [authority] = Object.entries(NAMES).find(([, names]) =>
    names.some((each) => each === own),
  ) ?? ['ca'];
  if (!existsSync(join(root, file))) return `MISSING! ${name}\n`;
  if (!existsSync(join(root, FOLDER, `${authority}.key`)))
    return `Detected external ${authority}, ${name} can't be renewed\n`;
  issue(root, authority, file, Date.now() + lifeMs);
  return `certificate ${name} renewed\n`;
}

function issueThen(
  root: string,
  authority: string,
  file: string,
  { notBefore, notAfter }: Validity,
): void {
  issue(root, authority, file, notAfter);
  utimesSync(join(root, file), notBefore / 1000, notBefore / 1000);
}

/** Issues a certificate. As with kubeadm, its validity begins when the validity of its authority begins. */
function issue(root: string, authority: string, file: string, notAfter: number): void {
  const by = new X509Certificate(readFileSync(join(root, FOLDER, `${authority}.crt`)));
  const key = readFileSync(join(root, FOLDER, `${authority}.key`), 'utf8');
  const names = { dns: ['localhost'], addresses: ['127.0.0.1'] };
  const validity = { notBefore: Date.parse(by.validFrom), notAfter };
  const made = issueServer({ subject: subjectOf(authority), key }, names, validity);
  const data = Buffer.from(made.certificate).toString('base64');
  if (file.endsWith('.conf'))
    return write(join(root, file), `users:\n- user:\n    client-certificate-data: ${data}\n`);
  write(join(root, file.replace(/crt$/, 'key')), made.key);
  return write(join(root, file), made.certificate);
}

function subjectOf(authority: string): { readonly commonName: string } {
  return { commonName: authority.replace('/', '-') };
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode: 0o600 });
}
