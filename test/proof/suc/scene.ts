/** What the parts of the proof share: the cluster, and the commands of its administrator. */
import { join } from 'node:path';
import { must } from '../../../tools/release/commands.ts';
import type { Checks } from '../checks.ts';
import type { Cluster } from '../kubeadm/cluster.ts';
import { until } from '../wait.ts';
import type { InsideOptions } from './options.ts';
import type { Original } from './original.ts';

export interface Scene {
  readonly cluster: Cluster;
  readonly options: InsideOptions;
  readonly checks: Checks;
  readonly log: (line: string) => void;
}

/** The parts that compare Refit with the original are given its programs. */
export function originalOf({ options }: Scene): Original {
  if (options.original === undefined) throw new Error('this part needs the original');
  return options.original;
}

/** kubectl with the administrator's kubeconfig. */
export async function administer(
  { cluster, options }: Scene,
  ...args: readonly string[]
): Promise<string> {
  const kubectl = join(options.parts, options.from, 'kubectl');
  return await must(kubectl, ['--kubeconfig', cluster.kubeconfig, ...args]);
}

/** Reads objects as JSON. */
export async function get<T>(scene: Scene, ...what: readonly string[]): Promise<T> {
  return JSON.parse(await administer(scene, 'get', ...what, '-o', 'json')) as T;
}

interface Nodes {
  readonly items: readonly {
    readonly status: {
      readonly conditions: readonly { readonly type: string; readonly status: string }[];
    };
  }[];
}

/** Prepares a new cluster: all machines have the images, all Nodes are ready, and pods reach the operator. */
export async function prepare(scene: Scene): Promise<void> {
  const { cluster, options, log } = scene;
  for (const machine of cluster.machines) {
    for (const archive of options.archives)
      await machine.must(`ctr -n k8s.io images import /opt/parts/${archive}`);
    const last = machine.address.split('.').at(-1);
    // The channels of the suite are at the operator, so the operator answers pods.
    await must('ip', ['route', 'add', `10.244.${last}.0/24`, 'via', machine.address]);
  }
  await until('all Nodes to be ready', 300, async () => {
    const { items } = await get<Nodes>(scene, 'nodes');
    const ready = items.filter(({ status }) =>
      status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    );
    return ready.length === cluster.machines.length;
  });
  // Until these certificates are approved, the API server cannot read the logs of pods.
  const requests = (await administer(scene, 'get', 'csr', '-o', 'name')).trim().split('\n');
  await administer(scene, 'certificate', 'approve', ...requests);
  log('the cluster is ready');
}
