/** Runs in the operator's namespaces. Makes the cluster, upgrades it, and checks it. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../src/util/clock.ts';
import { messageOf } from '../../../src/util/errors.ts';
import { Checks } from '../checks.ts';
import { makeSwitch, OPERATOR } from '../machines/namespaces.ts';
import { upgradeByPods } from './agents/by-pods.ts';
import { upgradeByAgents } from './agents/upgrade.ts';
import { upgradeAnotherWay } from './another-way/upgrade.ts';
import { anotherWay } from './another-way/way.ts';
import { Balancer } from './balancer.ts';
import { renewCertificates } from './certificates/renew.ts';
import { BALANCER, startMachines, USUAL, type Way } from './cluster.ts';
import { upgradeWithFaults } from './faults/faults.ts';
import { replaceHost } from './faults/replace-host.ts';
import { restoreEtcd } from './faults/restore-etcd.ts';
import { rollBackKubelet } from './faults/roll-back.ts';
import { rollBackStaticPods } from './faults/static-pods-back.ts';
import { skipMinors, upgradeByHops } from './hops/hops.ts';
import { upgradeByMinor } from './hops/minor.ts';
import { upgradeByManagers } from './managers/upgrade.ts';
import { Operator } from './operator.ts';
import { type InsideOptions, type Part, resultOf } from './options.ts';
import { packagedWay } from './patch-back/packaged.ts';
import { goBack, goBackByPackages } from './patch-back/patch-back.ts';
import { recordKubeadm } from './recordings.ts';
import { type Scene, upgrade } from './upgrade.ts';

const started = systemClock.monotonic();
function log(line: string): void {
  const seconds = Math.round((systemClock.monotonic() - started) / 1000);
  process.stdout.write(
    `${String(Math.floor(seconds / 60)).padStart(2)}:${String(seconds % 60).padStart(2, '0')} ${options.part}: ${line}\n`,
  );
}

/** Makes a cluster for `work`, and removes it when `work` ends. */
async function withCluster(
  name: string,
  options: InsideOptions,
  work: (scene: Scene) => Promise<void>,
  way: Way = USUAL,
): Promise<void> {
  const directory = join(options.directory, name);
  await mkdir(directory);
  const own = { ...options, directory, log, way };
  const cluster = await startMachines(own);
  const addresses = cluster.controlPlanes.map(({ address }) => address);
  await using balancer = new Balancer(addresses, way.ports, BALANCER);
  await balancer.start(OPERATOR);
  await way.make(cluster, own);
  const { refit, parts, from, offers } = options;
  const [to = from] = offers.slice(-1);
  const kubectl = join(parts, to, 'kubectl');
  const logs = join(options.logs, name);
  const operator = new Operator(cluster, { directory, refit, kubectl, version: to, logs });
  await work({ cluster, operator, checks, log, from, hops: offers.slice(0, -1), to });
  for (const machine of cluster.machines) await machine.powerOff();
  await rm(directory, { recursive: true });
}

/** A way that only starts the machines. kubeadm has not run on them. */
const madeByOthers: Way = { ...USUAL, make: async () => await Promise.resolve() };

async function upgradeAndRestore(scene: Scene): Promise<void> {
  await upgrade(scene);
  await restoreEtcd(scene);
}

const file = process.argv[2] ?? '';
const options = JSON.parse(await readFile(file, 'utf8')) as InsideOptions;
const checks = new Checks(log);

const PARTS: Readonly<Record<Part, () => Promise<void>>> = {
  upgrade: async () => await withCluster('quiet', options, upgradeAndRestore),
  faults: async () => await withCluster('disturbed', options, upgradeWithFaults),
  'another-way': async () => await withCluster('another', options, upgradeAnotherWay, anotherWay),
  agents: async () => await withCluster('agents', options, upgradeByAgents),
  daemonset: async () => await withCluster('daemonset', options, upgradeByPods),
  managers: async () => {
    const work = async (scene: Scene): Promise<void> =>
      await upgradeByManagers(scene, options.managers);
    await withCluster('managed', options, work, madeByOthers);
  },
  recordings: async () => await withCluster('recorded', options, recordKubeadm),
  'roll-back': async () => await withCluster('rolled-back', options, rollBackKubelet),
  'static-pods-back': async () => await withCluster('restored', options, rollBackStaticPods),
  'patch-back': async () => await withCluster('back', options, goBack),
  'packages-back': async () =>
    await withCluster('packaged', options, goBackByPackages, packagedWay),
  'replace-host': async () => await withCluster('replaced', options, replaceHost),
  certificates: async () => await withCluster('renewed', options, renewCertificates),
  minor: async () => {
    const work = async (scene: Scene): Promise<void> => await upgradeByMinor(scene, options.etcd);
    await withCluster('minor', options, work);
  },
  hops: async () => await withCluster('hopped', options, upgradeByHops),
  'skipped-minors': async () => await withCluster('skipped', options, skipMinors),
};
await makeSwitch([OPERATOR, BALANCER]);
try {
  await PARTS[options.part]();
} catch (error) {
  await checks.check('the proof comes to its end', () => [messageOf(error)]);
}
await writeFile(resultOf(options), JSON.stringify(checks.outcome));
// The machines end when this process ends.
process.exit(0);
