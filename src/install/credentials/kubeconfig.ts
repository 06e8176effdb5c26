/**
 * Writes kubeconfigs for agents. They contain a certificate, or a command that gets a new certificate whenever the
 * client needs it.
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type ClusterConfig, clusterEntry } from '../../kube/config/cluster-config.ts';
import { RefitError } from '../../util/errors.ts';
import { parseFirstYamlDocument, writeYaml } from '../../util/yaml.ts';
import type { ClientCertificate } from './issue.ts';

/** Returns a kubeconfig as YAML. The name of the user in it means nothing outside of the file. */
export async function kubeconfigWith(config: ClusterConfig, user: object): Promise<string> {
  const pem = config.certificateAuthority;
  const authority = pem && ('text' in pem ? pem.text : await readFile(pem.file, 'utf8'));
  return writeYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'cluster', cluster: clusterEntry(config, authority) }],
    users: [{ name: 'agent', user }],
    contexts: [{ name: 'agent', context: { cluster: 'cluster', user: 'agent' } }],
    'current-context': 'agent',
  });
}

const PATHS = new Set(['certificate-authority', 'client-certificate', 'client-key', 'tokenFile']);

/**
 * Returns the kubeconfig `text` as JSON that can be moved to another folder. Paths that are
 * relative to `folder` become absolute.
 */
export function withFullPaths(text: string, folder: string): string {
  const config = parseFirstYamlDocument(text, () => {
    // The message of the parser is not used, because it may quote a token.
    throw new RefitError('REFIT_KUBECONFIG', 'the kubeconfig is not YAML');
  });
  return JSON.stringify(config, (key, value: unknown) => {
    const isPath = (it: string): boolean =>
      key === 'command' ? it.includes('/') : PATHS.has(key) && it !== '';
    return typeof value === 'string' && isPath(value) ? resolve(folder, value) : value;
  });
}

/** Returns the user entry of a kubeconfig, with the certificate and the key in the entry. */
export function withCertificate({ certificate, key }: ClientCertificate): object {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
}

/** Returns the user entry of a kubeconfig with an exec plugin. `command` must print an ExecCredential. */
export function withCommand([command = '', ...args]: readonly string[]): object {
  return { exec: { apiVersion: EXEC_VERSION, command, args, interactiveMode: 'Never' } };
}

const EXEC_VERSION = 'client.authentication.k8s.io/v1';

/** Returns the ExecCredential that the command of `withCommand` must print. It is valid until `expires`, in RFC 3339. */
export function execCredential({ certificate, key }: ClientCertificate, expires: string): string {
  const status = {
    clientCertificateData: certificate,
    clientKeyData: key,
    expirationTimestamp: expires,
  };
  return `${JSON.stringify({ apiVersion: EXEC_VERSION, kind: 'ExecCredential', status })}\n`;
}
