/** Names the control plane's users and writes a kubeconfig for each. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { applyManifest } from './apply.ts';
import { pkiPath } from './arguments.ts';
import { issueClient, type KeyPair, type Subject, type Validity, validFrom } from './certs.ts';

/**
 * A user of the control plane. docs/internals/testenv.md lists what each user may do. `node` is the kubelet of a
 * worker, and `controlNode` is the agent on a controller.
 */
export type User =
  | 'admin'
  | 'controller'
  | 'cattle'
  | 'kubeadm'
  | 'capi'
  | 'viewer'
  | 'operator'
  | 'approver'
  | { readonly node: string }
  | ControlNodeUser;

/** `node` is the name of its Node if the controller also runs pods. */
interface ControlNodeUser {
  readonly controlNode: string;
  readonly node?: string;
}

/** What a process needs to reach a running control plane. Everything else is in the directory of the control plane. */
export interface Place {
  readonly url: string;
  readonly directory: string;
  /** Path of the kubectl of the same version. */
  readonly kubectl: string;
}

export const CA_SUBJECT: Subject = { commonName: 'refit-test-ca' };
const HOUR_MS = 3_600_000;
const ROOT = join(import.meta.dirname, '..', '..');

/** Path of a kubeconfig with embedded credentials. Each user has one file. */
export async function kubeconfigFor(place: Place, user: User): Promise<string> {
  const path = join(place.directory, 'kubeconfigs', `${fileName(user)}.yaml`);
  if (existsSync(path)) return path;
  if (typeof user === 'object' && 'controlNode' in user) await grantControlNode(place, user);
  return await writeKubeconfig(place, path, subjectOf(user), validFrom(Date.now()));
}

/** Path of a kubeconfig for the viewer whose client certificate expired an hour ago. */
export async function expiredKubeconfigFor(place: Place): Promise<string> {
  const path = join(place.directory, 'kubeconfigs', 'expired.yaml');
  const now = Date.now();
  return await writeKubeconfig(place, path, subjectOf('viewer'), {
    notBefore: now - 2 * HOUR_MS,
    notAfter: now - HOUR_MS,
  });
}

/** Writes a kubeconfig for `subject` to `path` atomically: another process never reads half of it. */
export async function writeKubeconfig(
  place: Place,
  path: string,
  subject: Subject,
  validity: Validity,
) {
  const ca = await readFile(pkiPath(place.directory, 'ca.crt'), 'utf8');
  const { certificate, key } = await issueFor(place, subject, validity);
  const base64 = (pem: string): string => Buffer.from(pem).toString('base64');
  const user = { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'refit', cluster: { server: place.url, 'certificate-authority-data': base64(ca) } },
    ],
    users: [{ name: subject.commonName, user }],
    contexts: [{ name: 'refit', context: { cluster: 'refit', user: subject.commonName } }],
    'current-context': 'refit',
  };
  await mkdir(dirname(path), { recursive: true });
  const unfinished = `${path}.${randomUUID()}`;
  await writeFile(unfinished, stringify(config), { mode: 0o600 });
  await rename(unfinished, path);
  return path;
}

/** A client certificate from the control plane's authority. */
export async function issueFor(
  place: Pick<Place, 'directory'>,
  subject: Subject,
  validity: Validity,
): Promise<KeyPair> {
  const key = await readFile(pkiPath(place.directory, 'ca.key'), 'utf8');
  return issueClient({ subject: CA_SUBJECT, key }, subject, validity);
}

export function subjectOf(user: User): Subject {
  if (user === 'admin') return { commonName: 'admin', organization: 'system:masters' };
  if (typeof user === 'string') return { commonName: `refit-${user}` };
  if ('controlNode' in user) return { commonName: `refit:controlnode:${user.controlNode}` };
  return { commonName: `system:node:${user.node}`, organization: 'system:nodes' };
}

function fileName(user: User): string {
  if (typeof user === 'string') return user;
  if (!('controlNode' in user)) return `node-${user.node}`;
  return `controlnode-${user.controlNode}${user.node === undefined ? '' : `-node-${user.node}`}`;
}

/** RBAC names objects one by one, so each control node has a role of its own. */
async function grantControlNode(
  place: Place,
  { controlNode, node }: ControlNodeUser,
): Promise<void> {
  const files = [
    'rbac-controlnode.yaml',
    ...(node === undefined ? [] : ['rbac-controlnode-workloads.yaml']),
  ];
  for (const file of files) {
    const template = await readFile(join(ROOT, 'deploy', file), 'utf8');
    const manifest = template
      .replaceAll('CONTROL_NODE', controlNode)
      .replaceAll('NODE', node ?? '');
    await applyManifest(await kubeconfigFor(place, 'admin'), manifest);
  }
}
