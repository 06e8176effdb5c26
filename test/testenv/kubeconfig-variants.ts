/** Makes kubeconfigs that differ in one thing from those of the documented users: for failures and for proxies. */
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { kubeconfigFor, type User } from './control-plane.ts';

interface Kubeconfig {
  clusters: { cluster: { server: string } }[];
  'current-context'?: string;
}

/** The path of a new file in `directory`. */
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

/** The same user at another URL, such as that of a proxy on loopback. */
export async function kubeconfigVia(directory: string, user: User, url: string): Promise<string> {
  return await variantFor(directory, user, ({ clusters }) => {
    for (const { cluster } of clusters) cluster.server = url;
  });
}
