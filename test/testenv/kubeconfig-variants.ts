/**
 * Creates kubeconfigs that differ in one field from the kubeconfigs of the documented users. Tests use them for
 * failures and for proxies.
 */
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { kubeconfigFor, type User } from './control-plane.ts';

interface Kubeconfig {
  clusters: { cluster: { server: string } }[];
  'current-context'?: string;
}

/** Writes the changed kubeconfig to a new file in `directory`, and returns the path of the file. */
export async function variantFor(
  directory: string,
  user: User,
  change: (kubeconfig: Kubeconfig) => void,
): Promise<string> {
  const kubeconfig = parse(await readFile(await kubeconfigFor(user), 'utf8')) as Kubeconfig;
  change(kubeconfig);
  const path = join(directory, `${randomUUID()}.json`);
  await writeFile(path, JSON.stringify(kubeconfig));
  return path;
}

/** Writes a kubeconfig for the same user at another URL, such as the URL of a proxy on loopback, and returns its path. */
export async function kubeconfigVia(directory: string, user: User, url: string): Promise<string> {
  return await variantFor(directory, user, ({ clusters }) => {
    for (const { cluster } of clusters) cluster.server = url;
  });
}
