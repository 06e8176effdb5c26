/** Records what kubeadm does without Refit. The stand-in of the ordinary tests uses these recordings. */
import {
  facts,
  type KubeadmHosts,
  readRecorded,
  record,
  writeRecorded,
} from '../../support/kubeadm/recording.ts';
import type { Machine } from '../machines/machine.ts';
import type { Scene } from './upgrade.ts';
import { settled } from './verify.ts';

/** Writes the file of the recordings again. Afterwards `git diff` shows how they differ from the previous recordings. */
export async function recordKubeadm({ cluster, operator, checks, from, to }: Scene): Promise<void> {
  const machineOf = (host: string): Machine => {
    const found = cluster.machines.find(({ name }) => name === host);
    if (found === undefined)
      throw new Error(`recordings need a machine ${host}: use --size 2+1 or more`);
    return found;
  };
  const hosts: KubeadmHosts = {
    from,
    to,
    root: (host) => machineOf(host).root,
    kubeadm: (_host, version) => (version === to ? `/opt/kubernetes/${to}/kubeadm` : 'kubeadm'),
    sh: async (host, script) => (await machineOf(host).run(script)).stdout,
  };
  await settled(cluster, operator);
  await checks.check('kubeadm does what was recorded of it', async () => {
    const before = await readRecorded().catch(() => []);
    const now = await record(hosts);
    await writeRecorded(now);
    return now
      .filter(
        (each, index) =>
          JSON.stringify(facts(each)) !== JSON.stringify(before[index] && facts(before[index])),
      )
      .map(
        ({ host, command }) =>
          `${host}: ${command} is another than in test/fixtures/kubeadm/recorded.json`,
      );
  });
}
