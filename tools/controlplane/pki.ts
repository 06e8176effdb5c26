/** Writes `pki/`: the authority, the server certificate, and the key pair that signs service account tokens. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pkiPath } from './arguments.ts';
import { createAuthority, issueServer, validFrom } from './certs.ts';
import { CA_SUBJECT } from './kubeconfig.ts';

const DNS_NAMES = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];
/** Loopback, and the API server's own ClusterIP. */
const ADDRESSES = ['127.0.0.1', '10.96.0.1'];

/** Writes the files of `pki/`. The server certificate also contains `addresses`. */
export async function writePki(
  directory: string,
  addresses: readonly string[],
  now: number,
): Promise<void> {
  const validity = validFrom(now);
  // An RSA key, as kubeadm makes it. The API server checks the signature of this key at each request of a client. With
  // RSA, this check takes a third of the time.
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ca = createAuthority(
    CA_SUBJECT,
    validity,
    privateKey.export({ type: 'pkcs8', format: 'pem' }),
  );
  const names = { dns: DNS_NAMES, addresses: [...ADDRESSES, ...addresses] };
  const server = issueServer({ subject: CA_SUBJECT, key: ca.key }, names, validity);
  const tokens = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const files = {
    'ca.crt': ca.certificate,
    'ca.key': ca.key,
    'server.crt': server.certificate,
    'server.key': server.key,
    'sa.key': tokens.privateKey.export({ type: 'sec1', format: 'pem' }),
    'sa.pub': tokens.publicKey.export({ type: 'spki', format: 'pem' }),
  };
  await mkdir(dirname(pkiPath(directory, 'ca.crt')), { recursive: true });
  for (const [name, text] of Object.entries(files))
    await writeFile(pkiPath(directory, name), text, { mode: 0o600 });
}
