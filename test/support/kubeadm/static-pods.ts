/**
 * Does what a kubelet does for a static pod when the annotations in its manifest change: it restarts the pod and shows
 * the annotations in the mirror pod.
 */
import { X509Certificate } from 'node:crypto';
import { appendFileSync, existsSync, type FSWatcher, readFileSync, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { COMPONENTS, type StandInHost } from '../../../sandbox/sshd/stand-in-host.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { pods } from '../../../src/kube/resources.ts';

type Annotations = Readonly<Record<string, string>> | undefined;

/**
 * Simulates the static pods of a host. It logs each start, and each time at which a manifest is missing, to
 * `var/log/static-pods` of the host.
 */
export function playStaticPods(client: KubeClient, { name: node, root }: StandInHost): Disposable {
  const folder = join(root, 'etc/kubernetes/manifests');
  const fileOf = (component: string): string => join(folder, `${component}.yaml`);
  const known = new Map(
    COMPONENTS.map((each) => [each, JSON.stringify(annotationsIn(fileOf(each)))]),
  );
  const tell = (line: string): void =>
    appendFileSync(join(root, 'var/log/static-pods'), `${line}\n`);
  const look = (component: string): void => {
    if (!existsSync(fileOf(component))) return tell(`${component} is away`);
    const annotations = annotationsIn(fileOf(component));
    if (JSON.stringify(annotations) === known.get(component)) return undefined;
    known.set(component, JSON.stringify(annotations));
    tell(component);
    const options = { namespace: 'kube-system', type: 'merge' } as const;
    void client
      .patch(pods, `${component}-${node}`, { metadata: { annotations } }, options)
      .catch(() => undefined);
    return undefined;
  };
  const watcher: FSWatcher = watch(folder, (_event, file) => {
    const component = COMPONENTS.find((each) => `${each}.yaml` === file);
    if (component !== undefined) look(component);
  });
  return { [Symbol.dispose]: () => watcher.close() };
}

function annotationsIn(file: string): Annotations {
  const { metadata } = parse(readFileSync(file, 'utf8')) as {
    metadata?: { annotations?: Annotations };
  };
  return metadata?.annotations;
}

/** Returns the time at which a certificate below kubeadm's folder expires, in milliseconds since the Unix epoch. */
export async function endOf(root: string, name: string): Promise<number> {
  return Date.parse(
    new X509Certificate(await readFile(join(root, 'etc/kubernetes/pki', `${name}.crt`))).validTo,
  );
}
