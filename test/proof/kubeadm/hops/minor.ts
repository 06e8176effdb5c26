/** Tests the upgrade of the guide over a minor version whose kubeadm installs another minor version of etcd. */
import { differing } from '../../checks.ts';
import type { Cluster } from '../cluster.ts';
import { etcdStatus } from '../etcd.ts';
import { type Scene, upgrade } from '../upgrade.ts';

/** `etcd` is the version that each member has at the end, such as `v3.7.0`. */
export async function upgradeByMinor(scene: Scene, etcd: string): Promise<void> {
  const { cluster, checks } = scene;
  const before = await etcdVersions(cluster);
  await checks.check(`no member of etcd has ${etcd} before`, () =>
    Object.entries(before).flatMap(([name, version]) =>
      version === etcd ? [`${name} has it`] : [],
    ),
  );
  await upgrade(scene);
  await checks.check(`every member of etcd has ${etcd} afterwards`, async () =>
    differing(await etcdVersions(cluster), etcd),
  );
}

async function etcdVersions({ controlPlanes }: Cluster): Promise<Record<string, string>> {
  const versions: Record<string, string> = {};
  for (const machine of controlPlanes) {
    const { version = 'none' } = await etcdStatus(machine);
    versions[machine.name] = `v${version}`;
  }
  return versions;
}
